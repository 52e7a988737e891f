"""Clients under a throttle, simulated: protected as on brokers, or held back by what each test has go wrong."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.schema import Event, Sample, events_table, samples_table
from results.criteria import judge
from results.criteria.catalogue.clients_protected import allowed_share, busy_s, response_s, rest_s
from results.criteria.protection_measures import measure_protection
from results.criteria.sample_series import RunSeries
from tests.results.moves import simulate
from tests.results.scenes import one_to_two, two_node
from tests.results.synthetic import MIB, us

RUN = simulate(two_node(0.5e6, size=300e6))
DONE_S = (
    RUN.manifest.move
    and (
        pc.min(pc.cast(RUN.events.filter(pc.equal(RUN.events["kind"], "move.done"))["ts"], pa.int64())).as_py()
        - us(0.0)
    )
    / 1e6
)
ARRIVE_S, BACK_S = DONE_S - 2.0, DONE_S + 9.0
PER_SECOND = 400
"""Records due in a second."""


def told(due_s, slow_ms, slow_share):
    """One second's latencies: most take 90 to 104 ms, a share of them `slow_ms`."""
    slow = round(PER_SECOND * slow_share)
    rest = PER_SECOND - slow
    for ms, count in ((90, rest - rest // 20), (104, rest // 20), (slow_ms, slow)):
        yield Sample(us(due_s), "producer-1", "client.produce.latency", float(count), label=str(1000 * ms))


def clients(*, copying=(90, 0.0), stall=None, arriving=(600, 0.3), back=(90, 0.0), back_arriving=(300, 0.3)):
    """Samples of one producer; each of the pairs is what the slow ones take, in ms, and their share.

    `stall` is the second of the move, how many it lasts, and the pair.
    """
    found = []
    for second in range(-11, int(BACK_S) + 8):
        due_s = second + 0.75  # the end of a whole second of the clock
        pair = (90, 0.0)
        if due_s > BACK_S + 3:
            pair = back_arriving if due_s < BACK_S + 4.2 else pair
        elif due_s > BACK_S + 1:
            pair = back
        elif ARRIVE_S < due_s <= DONE_S:
            pair = arriving
        elif 1 < due_s <= ARRIVE_S:
            pair = copying
            if stall is not None and stall[0] < due_s <= stall[0] + stall[1]:
                pair = stall[2]
        found += told(due_s, *pair)
    for at, left in ((0.3, 6), (ARRIVE_S - 0.3, 6), (ARRIVE_S + 0.2, 3), (DONE_S - 0.1, 0)):
        found.append(Sample(us(at), "driver", "move.in_flight", float(left)))
    for at, left in ((BACK_S + 0.1, 6), (BACK_S + 3.0, 6), (BACK_S + 3.1, 2), (BACK_S + 3.9, 0)):
        found.append(Sample(us(at), "driver", "return.in_flight", float(left)))
    return found


RETURNED = (Event(us(BACK_S), "return.started"), Event(us(BACK_S + 4.0), "return.done"))


def run_of(samples, events=RETURNED):
    kept = RUN.samples.filter(
        pc.invert(pc.is_in(RUN.samples["metric"], pa.array(["client.produce.latency", "move.in_flight"])))
    )
    return (
        replace(RUN.manifest, criteria=("clients-protected", "load-rate-sustained")),
        pa.concat_tables([kept, samples_table(samples)]),
        pa.concat_tables([RUN.events, events_table(list(events))]),
    )


def judged(samples, events=RETURNED, **move):
    manifest, samples, events = run_of(samples, events)
    manifest = replace(manifest, move=replace(manifest.move, **move))
    (found,) = (c for c in judge(manifest, samples, events).criteria if c.name == "clients-protected")
    return found


def test_seconds_are_before_copying_or_arriving_and_so_they_are_when_it_moves_back():
    _manifest, samples, events = run_of(clients())
    (found,) = measure_protection(RunSeries(samples, events), 11.0)
    assert found.limit_us == pytest.approx(1.1 * 104_000)
    assert found.before.seconds == 10 and found.before.longest_us == 104_000
    assert (found.copying.late, found.copying.longest_us) == (0.0, 104_000)
    # Whole seconds from the move on, but the one before the poll that lists all partitions for the last time.
    assert found.copying.seconds == int(ARRIVE_S) - 2
    assert found.arriving.longest_us == 600_000
    assert (found.back_copying.longest_us, found.back_arriving.longest_us) == (104_000, 300_000)
    assert {window.seconds for window in found.windows} == {11}


def test_a_second_of_the_unthrottled_control_is_not_of_copying():
    control = (Event(us(5.0), "control.started"), Event(us(7.0), "control.done"))
    slow = clients(stall=(5, 2, (3000, 0.9)))
    assert judged(slow).verdict == "fail"
    assert judged(slow, (*RETURNED, *control)).verdict == "pass"


def test_clients_that_notice_only_arrivals_are_protected():
    found = judged(clients())
    assert (found.verdict, found.host, found.observed, found.unit) == ("pass", "producer-1", 0.6, "s")
    assert "waits of at most 1,136 ms copying, 1,427 ms arriving, " in found.expected
    assert "p99 (longest) 104 ms (104) before, 104 ms (104) copying" in found.why
    assert "600 ms (600) arriving; without a throttle 104 ms (104) copying, 300 ms (300) arriving" in found.why


def test_a_wait_of_more_than_a_sample_while_copying_is_named():
    found = judged(clients(stall=(8, 1, (1200, 0.02))))
    assert found.verdict == "fail" and found.observed == 1.2
    assert found.why.startswith("copying held an acknowledgement back: p99")
    assert "a response of each fetcher is worth 0.1 s of the throttle, which rests 0.1 s, the CPU was 50" in found.why
    assert judged(clients(stall=(8, 1, (1100, 0.02)))).verdict == "pass"


def test_more_late_acknowledgements_than_the_throttles_bytes_explain_are_named():
    carries = {(nic.host, nic.direction): nic.payload_bytes_per_s for nic in RUN.manifest.nics}
    share = allowed_share(busy_s(RUN.manifest.move, carries), 11)
    assert share == pytest.approx(0.01 + 0.99 * (10e6 * 12 + 2 * MIB) / 47.82e6 / 11, rel=0.01)
    found = judged(clients(copying=(130, share + 0.03)))
    assert found.verdict == "fail"
    assert found.why.startswith("copying made ") and " late in 11 s from +" in found.why
    assert judged(clients(copying=(130, share - 0.03))).verdict == "pass"


def test_arrivals_may_take_as_long_as_without_a_throttle_and_its_grain():
    assert judged(clients(arriving=(1400, 0.5))).verdict == "pass"
    found = judged(clients(arriving=(1450, 0.5)))
    assert found.verdict == "fail" and found.why.startswith("arriving took longer than without a throttle: ")
    # Of larger responses each is worth more of the throttle.
    assert judged(clients(arriving=(1450, 0.5)), response_max_bytes=2 * MIB).verdict == "pass"


def test_a_producer_that_arrivals_do_not_touch_must_not_notice_them():
    """As of KAFKA-4313's low-volume partitions: they stay where they are, and the throttle held them back."""
    found = judged(clients(arriving=(1729, 0.1), back_arriving=(90, 0.0)), response_max_bytes=20 * MIB)
    assert found.verdict == "fail"
    assert "waits of at most 1,553 ms copying, 1,553 ms arriving" in found.expected
    assert "a response of each fetcher is worth 2.1 s of the throttle" in found.why


def test_without_the_move_back_arrivals_are_not_judged_and_nothing_passes():
    found = judged(clients(), ())
    assert found.verdict == "inconclusive" and "the partitions did not move back without a throttle" in found.why
    assert judged(clients(stall=(8, 1, (1500, 0.5))), ()).verdict == "fail"


def test_without_enough_before_nothing_is_said():
    late = [s for s in clients() if s.metric != "client.produce.latency" or s.ts_us > us(-4.0)]
    found = judged(late)
    assert found.verdict == "inconclusive" and "too few acknowledgements were seen before the move" in found.why


def test_without_any_acknowledgement_nothing_is_said():
    found = judged([s for s in clients() if s.metric != "client.produce.latency"])
    assert (found.verdict, found.host) == ("inconclusive", None)


def test_a_busy_machine_leaves_it_open_by_name():
    manifest, samples, events = run_of(clients(stall=(8, 1, (1500, 0.5))))
    busy = pc.equal(samples["metric"], "cpu.busy")
    at = samples.schema.get_field_index("value")
    samples = samples.set_column(at, "value", pc.if_else(busy, 0.97, samples["value"]))
    (found,) = (c for c in judge(manifest, samples, events).criteria if c.name == "clients-protected")
    assert found.verdict == "inconclusive" and found.why.startswith("not judged: machine-load (machine): 97.0 % busy")


def late(*seconds, by_s=0.7):
    """What a producer reports of its own lateness, once a second."""
    times = range(-11, int(BACK_S) + 7)
    return [Sample(us(t + 0.95), "producer-1", "client.late", by_s if t in seconds else 0.003) for t in times]


def test_a_producer_that_is_late_itself_is_not_taken_for_a_slow_broker():
    """Somebody stops its process for 0.7 s, three times: a record is at most 0.7 s late, so the rate is held."""
    stopped = clients(stall=(8, 3, (700, 0.9)))
    assert judged(stopped).verdict == "fail"
    found = judged([*stopped, *late(8, 9, 10, 11)])
    assert found.verdict == "inconclusive"
    assert found.why.startswith("the producer itself handed records over late: copying made ")
    # It was late at another time, or by less than the broker.
    assert judged([*stopped, *late(20, 21)]).verdict == "fail"
    assert judged([*stopped, *late(8, 9, 10, 11, by_s=0.3)]).verdict == "fail"
    assert judged([*clients(), *late(8, 9, 10, 11)]).verdict == "pass"


def test_with_transactions_a_producer_is_late_while_brokers_commit():
    manifest, samples, events = run_of([*clients(stall=(8, 3, (700, 0.9))), *late(8, 9, 10, 11)])
    manifest = replace(manifest, parameters={**manifest.parameters, "transactions": 1.0})
    (found,) = (c for c in judge(manifest, samples, events).criteria if c.name == "clients-protected")
    assert found.verdict == "fail"


def unheld(samples, *, kept_waiting, **changes):
    """The criterion's finding in a run whose producer did not keep its rate."""
    manifest, samples, events = run_of(samples)
    process = replace(manifest.facts.live.processes[0], held=False, why="no answer", kept_waiting=kept_waiting)
    live = replace(manifest.facts.live, processes=(process,))
    manifest = replace(manifest, facts=replace(manifest.facts, live=live), **changes)
    (found,) = (c for c in judge(manifest, samples, events).criteria if c.name == "clients-protected")
    return found


def test_brokers_that_do_not_answer_for_so_long_that_the_load_breaks_down_do_not_excuse_themselves():
    """A wait of 3 s failed, and one of 31 s, after which the producer gives its records up, was inconclusive."""
    stalled = clients(stall=(8, 3, (31_000, 0.9)))
    found = unheld(stalled, kept_waiting=True)
    assert found.verdict == "fail" and found.why.startswith("copying held an acknowledgement back")
    # The producer itself was late, or nothing says who was.
    found = unheld(stalled, kept_waiting=False)
    assert found.verdict == "inconclusive" and found.why.startswith("not judged: load-rate-sustained (producer-1)")
    # What passes is open all the same: it is not known what the move was under.
    assert unheld(clients(), kept_waiting=True).verdict == "inconclusive"


def test_a_slow_nic_excuses_brokers_that_do_not_answer():
    slow = tuple(replace(nic, ratio=0.8) for nic in RUN.manifest.nics)
    assert unheld(clients(stall=(8, 3, (31_000, 0.9))), kept_waiting=True, nics=slow).verdict == "inconclusive"


def test_a_producer_that_was_behind_before_the_move_says_nothing_of_the_move():
    behind = [*clients(stall=(8, 3, (31_000, 0.9))), *told(-2.25, 2500, 0.5)]
    assert unheld(behind, kept_waiting=True).verdict == "inconclusive"


def test_a_response_of_each_fetcher_has_its_worth():
    move = replace(RUN.manifest.move, quota_bytes_per_s=4e6, response_max_bytes=20 * MIB)
    assert response_s(move) == rest_s(move, 1.7) == pytest.approx(5.24, abs=0.01)


def test_a_leader_that_had_followers_may_rest_for_a_window_and_serve_a_partition_last():
    move = simulate(one_to_two(0.5e6)).manifest.move
    assert response_s(move) == pytest.approx(2 * MIB / 10e6, abs=0.2)
    assert rest_s(move, 1.7) == 12.7
    assert rest_s(move, None) == 11.0


def test_a_replica_that_comes_in_sync_arrives_also_before_its_partition_is_done():
    """As of a move in steps: all partitions are in flight until the last step, and clients wait at each."""
    slow = clients(stall=(8, 1, (1300, 0.3)))
    assert judged(slow).verdict == "fail"
    ahead = [Sample(us(at), "driver", "isr.size", float(size), "t", 0) for at, size in ((8.0, 1), (8.3, 2), (8.6, 2))]
    assert judged(slow + ahead).verdict == "pass"
    # A replica that leaves the ISR, or one that came long before, is no arrival.
    left = [Sample(us(at), "driver", "isr.size", float(size), "t", 0) for at, size in ((8.0, 2), (8.3, 1), (8.6, 1))]
    assert judged(slow + left).verdict == "fail"
    before = [Sample(us(at), "driver", "isr.size", float(size), "t", 0) for at, size in ((4.0, 1), (4.3, 2), (9.0, 2))]
    assert judged(slow + before).verdict == "fail"


def test_late_seconds_right_before_an_arrival_are_of_it():
    """While the throttle rests, a replica that has caught up once holds acknowledgements back, not yet in the ISR."""
    grown = [Sample(us(at), "driver", "isr.size", float(size), "t", 0) for at, size in ((12.0, 1), (12.3, 2))]
    assert judged(clients(stall=(7, 5, (1300, 0.3))) + grown).verdict == "pass"
    # A second as before lies between the wait and the arrival.
    found = judged(clients(stall=(5, 5, (1300, 0.3))) + grown)
    assert found.verdict == "fail" and found.why.startswith("copying held an acknowledgement back")
