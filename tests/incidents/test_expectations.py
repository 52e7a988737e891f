"""Expectations, judged over recordings made by hand: each passes, fails, and does not judge what it did not see."""

import pytest

from results.contract.manifest import Records
from results.contract.schema import Sample
from results.criteria import judge
from results.criteria.expectations import EXPECTATIONS
from results.criteria.incident import deviation
from results.criteria.step_measures import UNREAD
from testbed.incidents.forms import CONTEXT
from tests.incidents.files import small
from tests.incidents.runs import CLEAN, at, event, machine, manifest, nics, replayed, tables


def every_second(host, metric, value, *, until=30, topic=None, partition=None, without=()):
    return [
        Sample(at(t), host, metric, float(value(t)), topic, partition) for t in range(-1, until + 2) if t not in without
    ]


def logs(host, topic, value, **more):
    """A topic's log on a host, beside the NIC counter that is read with it."""
    nic = every_second(host, "nic.rx.bytes", lambda t: 0.0, **more)
    return [*nic, *every_second(host, "log.bytes", value, topic=topic, partition=0, **more)]


def test_a_log_that_is_deleted_hides_no_byte_of_another_one():
    # Partition 0 leaves b2 after 60 MB, while partition 1 arrives at 12 MB/s.
    leaves = [Sample(at(t), "b2", "log.bytes", 60e6, "orders", 0) for t in range(-1, 5)]
    arrives = [Sample(at(t), "b2", "log.bytes", min(max(0, t), 10) * 12e6, "orders", 1) for t in range(-1, 32)]
    nic = every_second("b2", "nic.rx.bytes", lambda t: 0.0)
    found = expectation(RATE).judge(replayed([*nic, *leaves, *arrives]), at(0))
    assert (found.verdict, round(found.observed)) == ("fail", round(120e6 / 11))


def expectation(text):
    key, _, parameters = text.partition(" ")
    given = dict(word.split("=") for word in parameters.split())
    return EXPECTATIONS[key].model_validate(
        {name: {"true": True, "false": False}.get(value, value) for name, value in given.items()},
        context=dict(CONTEXT),
    )


def verdict(text, found, since=0.0):
    return expectation(text).judge(found, at(since)).verdict


NIC_RATE = "rate host=b1 direction=transmit max=6MB/s window=11s"
RATE = "rate topic=orders host=b2 direction=receive max=6MB/s window=11s"
STEADY = logs("b2", "orders", lambda t: max(0, t) * 5e6)
BURST = logs("b2", "orders", lambda t: min(1.0, max(0, t) / 3) * 120e6)


ISR = "isr min=2"


def sampled(metric, value, **more):
    return every_second("driver", f"topic.{metric}", value, topic="orders", **more)


@pytest.mark.parametrize(
    ("text", "samples", "expected"),
    [
        (RATE, STEADY, "pass"),
        (RATE.replace("6MB", "4.9MB"), STEADY, "fail"),
        (RATE, BURST, "fail"),
        (RATE.replace("orders", "clicks"), STEADY, "inconclusive"),  # nothing came, nothing was held back
        (RATE.replace("b2", "b3"), STEADY, "inconclusive"),
        (RATE, logs("b2", "orders", lambda t: max(0, t) * 5e6, without=range(10, 15)), "inconclusive"),
        (NIC_RATE, every_second("b1", "nic.tx.bytes", lambda t: t * 5e6), "pass"),
        (NIC_RATE, every_second("b1", "nic.tx.bytes", lambda t: t * 7e6), "fail"),
        (f"{ISR} topic=orders", sampled("isr", lambda t: 2), "pass"),
        (ISR, sampled("isr", lambda t: 2 - (t == 9)), "fail"),
        (f"{ISR} topic=clicks", sampled("isr", lambda t: 2), "inconclusive"),
        (ISR, sampled("isr", lambda t: 2, without=range(5, 10)), "inconclusive"),
        (ISR, sampled("isr", lambda t: 2, until=20), "inconclusive"),
        ("fully_replicated", sampled("under_replicated", lambda t: t < 20), "pass"),
        ("fully_replicated", sampled("under_replicated", lambda t: t > 20), "fail"),
        (
            "fully_replicated",
            [*sampled("under_replicated", lambda t: 0), *sampled("leaderless", lambda t: t > 20)],
            "fail",
        ),
        (
            "fully_replicated",
            [*sampled("under_replicated", lambda t: 0), *sampled("leaderless", lambda t: t < 20)],
            "pass",
        ),
        ("fully_replicated", sampled("under_replicated", lambda t: 0, until=10), "inconclusive"),
        ("fully_replicated", [], "inconclusive"),
    ],
)
def test_what_samples_show(text, samples, expected):
    assert verdict(text, replayed(samples)) == expected


def test_only_what_comes_after_the_entry_counts():
    late = replayed(BURST)
    assert verdict(RATE, late, since=5.0) == "inconclusive"
    broken = replayed(sampled("isr", lambda t: 2 - (t == 3)))
    assert verdict(ISR, broken, since=5.0) == "pass"


@pytest.mark.parametrize(
    ("mbit", "text", "expected"),
    [
        (95, "nic_bound host=b1 direction=receive", "pass"),
        (95, "nic_bound host=b1 direction=receive expected=false", "fail"),
        (50, "nic_bound host=b1 direction=receive expected=false", "pass"),
        (50, "nic_bound host=b1 direction=receive", "fail"),
        (95, "nic_bound host=b2 direction=receive", "inconclusive"),
    ],
)
def test_which_limit_binds(mbit, text, expected):
    found = every_second("b1", "nic.rx.bytes", lambda t: min(t, 12) * mbit * 125_000)
    assert verdict(text, replayed(found, measured=nics(bps=10**8)[:2])) == expected
    uplinks = every_second("b1", "uplink.rx.bytes", lambda t: min(t, 12) * mbit * 125_000)
    uplink = text.replace("nic_bound host", "uplink_bound rack")
    assert verdict(uplink, replayed(uplinks, uplinks={"b1": {"transmit": 10**9, "receive": 10**8}})) == expected


MOVED = [event(2, "move.started", "orders"), event(20, "move.done", "orders")]
CANCELLED = event(10, "move.cancelled", "move", partitions=1, kept={"orders-0": [1, 2]})
AGAIN = [event(2, "move.started", "orders"), event(12, "move.done", "orders"), event(20, "move.started", "orders")]


@pytest.mark.parametrize(
    ("text", "until", "expected"),
    [
        ("reassignment_completed within=10s", 9, "pass"),
        ("reassignment_completed within=8s", 9, "fail"),
        ("reassignment_completed within=20s", 99, "fail"),
        ("reassignment_completed within=60s", 99, "inconclusive"),
        ("reassignment_completed within=20s", 0, "inconclusive"),  # nothing was ever listed
        ("reassignment_completed topic=clicks within=20s", 9, "inconclusive"),
    ],
)
def test_a_reassignment_is_completed_when_it_is_listed_no_more(text, until, expected):
    polls = every_second("driver", "move.in_flight", lambda t: float(2 <= t < until), topic="orders")
    assert verdict(text, replayed(polls, MOVED[:1])) == expected


def in_force(seconds, topic="orders", rate="5"):
    """Set, and half a second later seen by every broker."""
    set_at = event(seconds - 0.5, "throttle.set")._replace(
        detail={f"topic {topic}": {"replicas": "*"}, "broker 1": {"rate": rate}, "broker 2": {"rate": rate}}
    )
    return [set_at, event(seconds, "throttle.in_force", brokers=[1, 2])]


REMOVED = event(1.5, "throttle.removed", brokers=[1, 2], topics=["clicks", "orders"])
RAISED = event(1.5, "throttle.set")._replace(detail={"broker 1": {"rate": "9"}, "broker 2": {"rate": "9"}})


@pytest.mark.parametrize(
    ("text", "events", "expected"),
    [
        ("move_done within=20s", MOVED, "pass"),
        ("move_done within=17s", MOVED, "fail"),
        ("move_done within=25s", MOVED[:1], "fail"),
        ("move_done within=40s", MOVED[:1], "inconclusive"),
        ("move_done within=40s", [], "inconclusive"),
        ("move_done topic=clicks within=20s", MOVED, "inconclusive"),
        ("move_done within=40s", AGAIN, "inconclusive"),
        ("move_done within=25s", AGAIN, "fail"),
        ("move_done within=25s", [*AGAIN, event(26, "move.done", "orders")], "pass"),
        ("move_done within=40s", [*MOVED[:1], CANCELLED], "fail"),
        ("move_done within=40s", [*MOVED[:1], CANCELLED._replace(ts_us=at(31))], "inconclusive"),
        ("move_done within=20s", [CANCELLED._replace(ts_us=at(1)), *MOVED], "pass"),
        ("move_done within=20s", [*MOVED, CANCELLED._replace(ts_us=at(25))], "pass"),
        ("quota_before_move", [*in_force(1), *MOVED], "pass"),
        ("quota_before_move", [*MOVED, *in_force(4)], "fail"),
        ("quota_before_move", [*MOVED, *in_force(2.2)], "fail"),
        ("quota_before_move", MOVED, "fail"),
        ("quota_before_move", in_force(1), "inconclusive"),
        ("quota_before_move", [*in_force(1, "clicks"), *MOVED], "fail"),
        ("quota_before_move", [*in_force(-3), *MOVED], "fail"),
        ("quota_before_move", [*in_force(1), REMOVED, *MOVED], "fail"),
        ("quota_before_move", [*in_force(1), RAISED, *MOVED], "fail"),
        ("quota_before_move", [*in_force(1), *in_force(2.2, "clicks"), *MOVED], "pass"),
        ("quota_before_move", [*in_force(1), *in_force(2.2, "clicks", "9"), *MOVED], "fail"),
        ("quota_before_move", [*in_force(1), *MOVED, event(25, "move.started", "clicks")], "fail"),
        (
            "quota_before_move",
            [*in_force(1), *MOVED, event(21, "throttle.removed", brokers=[1], topics=["orders"]), *AGAIN[2:]],
            "pass",
        ),
        (
            "quota_before_move",
            [*in_force(1), *MOVED, event(19, "throttle.removed", brokers=[1], topics=["orders"]), *AGAIN[2:]],
            "fail",
        ),
        ("throttle_removed", [event(30, "throttle.found", left=[], unread=[])], "pass"),
        ("throttle_removed", [event(30, "throttle.found", left=["broker 1: rate"], unread=[])], "fail"),
        ("throttle_removed", [event(30, "throttle.found", left=[], unread=["no answer"])], "inconclusive"),
        ("throttle_removed", [], "inconclusive"),
        ("all_acknowledged", [event(31, "load.done", sent=9, acknowledged=9, error=None)], "pass"),
        ("all_acknowledged", [event(31, "load.done", sent=9, acknowledged=8, error="x")], "fail"),
        ("all_acknowledged", [], "inconclusive"),
    ],
)
def test_what_events_show(text, events, expected):
    assert verdict(text, replayed(events=events), since=2.0) == expected


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (None, "inconclusive"),
        (Records(0, 0, 0, 0, 0), "inconclusive"),
        (Records(9, 9, 0, 0, 0), "pass"),
        (Records(9, 8, 1, 0, 0), "fail"),
        (Records(9, 8, 0, 0, 0), "fail"),
        (Records(9, 9, 0, 1, 0), "fail"),
        (Records(9, 9, 0, 0, 1), "fail"),
        (Records(9, 9, 0, 2, 0, reordered=1, sent_again=3), "inconclusive"),
        (Records(9, 9, 0, 2, 0, reordered=1, sent_again=2), "fail"),
        (Records(9, 8, 1, 2, 0, sent_again=2), "fail"),
        (Records(9, 9, 0, 2, 1, sent_again=2), "fail"),
        (Records(9, 9, 0, 0, 0, digest_mismatches=("t-0: the log on b2 is not that of its leader, b1",)), "fail"),
        (Records(9, 9, 0, 0, 0, uncompared="b2: no such host"), "inconclusive"),
        (Records(9, 8, 1, 0, 0, uncompared="b2: no such host"), "fail"),
    ],
)
def test_records(records, expected):
    assert verdict("records_intact", replayed(records=records)) == expected


def test_records_that_were_not_read_back_are_left_open_with_the_reason():
    """A replay whose records could not be read back was lost whole, with all that it showed."""
    why = "audit: 1 partition was not read to the end"
    for events, said in (([], ""), ([event(29, UNREAD, "records", why=why)], f": {why}")):
        found = expectation("records_intact").judge(replayed(events=events), at(0))
        assert (found.verdict, found.why) == ("inconclusive", f"the records were not read back{said}")


def test_produce_latency_counts_from_the_entry_to_the_end_of_the_replay():
    slow = [Sample(at(t / 10), "driver", "load.latency", 2.0 if t < 100 else 0.02, "c") for t in range(300)]
    after = [Sample(at(40 + t / 10), "driver", "load.latency", 9.0, "c") for t in range(300)]
    found = replayed([*slow, *after])
    assert verdict("produce_latency percentile=99% max=500ms", found) == "fail"
    assert verdict("produce_latency percentile=60% max=500ms", found) == "pass"
    assert verdict("produce_latency percentile=99% max=500ms", found, since=10.0) == "pass"
    assert verdict("produce_latency percentile=99% max=500ms", found, since=25.0) == "inconclusive"


def test_produce_latency_is_read_from_the_producers_buckets():
    metric = "client.produce.latency"
    fast = [Sample(at(t + 1), "driver", metric, 99.0, "c", label="20000") for t in range(10)]
    slow = [Sample(at(t + 1), "driver", metric, 1.0, "c", label="2000000") for t in range(10)]
    found = replayed([*fast, *slow])
    assert verdict("produce_latency percentile=99% max=500ms", found) == "pass"
    assert verdict("produce_latency percentile=99.5% max=500ms", found) == "fail"
    assert verdict("produce_latency percentile=99% max=500ms", found, since=9.0) == "pass"
    assert verdict("produce_latency percentile=99% max=500ms", found, since=9.5) == "inconclusive"


# ---- the whole


def acted(incident, *, late_s=0.0, without=()):
    return [
        event(2.0 + late_s, "incident.entry", entry.name, planned_s=2.0, actual_s=2.0 + late_s)
        for entry in incident.entries
        if entry.name not in without
    ]


def judged(incident, entries):
    samples = [
        *sampled("isr", lambda t: 1, until=60),
        *machine(),
    ]
    events = [*MOVED, event(60, "throttle.found", left=["broker 1: rate"], unread=[]), *entries]
    run = manifest(incident, records=Records(9, 9, 0, 0, 0), logs=CLEAN, measured=nics())
    criteria = judge(run, *tables(samples, events, ended=at(60))).criteria
    own = {c.name: c.verdict for c in criteria if c.name not in ("nic-measured", "machine-load", "logs-clean")}
    return own, deviation(run.incident, criteria)


def test_a_replay_that_went_as_written_is_judged_and_compared_with_what_the_file_expects():
    file = small()
    entries = acted(file.broken)
    assert judged(file.broken, entries) == (
        {
            "timeline": "pass",
            "move-done": "pass",
            "isr": "pass",
            "records-intact": "pass",
            "throttle-removed": "fail",
        },
        None,
    )
    assert judged(file.fixed, acted(file.fixed))[1] == "failed and should not have: throttle-removed"


@pytest.mark.parametrize(
    "entries",
    [
        acted(small().broken, late_s=0.2),
        [*acted(small().broken), event(3, "incident.failed", "lost", error="it did not take effect")],
        acted(small().broken, without=("lost",)),
    ],
    ids=["late", "an action failed", "a trigger never came"],
)
def test_a_timeline_that_did_not_happen_as_written_is_not_judged(entries):
    found, differs = judged(small().broken, entries)
    assert set(found.values()) == {"inconclusive"}
    assert differs is not None
    assert differs.startswith("could not be judged: ")


def test_an_optional_entry_need_not_act():
    assert judged(small().broken, acted(small().broken, without=("alarm",)))[0]["timeline"] == "pass"
