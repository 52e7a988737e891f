"""Invariants, judged over recordings made by hand: each holds, fails, and is not judged without its evidence."""

from dataclasses import replace

import pytest

from results.contract.manifest import Records
from results.contract.schema import Sample
from results.criteria import judge
from results.criteria.expectations import EXPECTATIONS
from testbed.incidents.forms import CONTEXT
from testbed.incidents.read import loads
from tests.incidents.files import SMALL
from tests.incidents.runs import BROKERS, T0, at, event, machine, manifest, nics, replayed, tables

IDS = {"b1": 1, "b2": 2, "b3": 3}
DURABLE = SMALL.replace(
    "size: 4MB, replicas: [b1, b2]", "size: 4MB, replicas: [b1, b2], configs: {min.insync.replicas: 2}"
)
RATE, LIST = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"


def run(*events, samples=()):
    """A replay whose timeline ran from 0 to 30 s, with the brokers' ids."""
    found = replayed(samples, events, incident=loads(DURABLE, "small.yaml").broken)
    found._by_kind["incident.started"][0]["detail"]["brokers"] = IDS
    return found


def verdict(key, found, **parameters):
    return EXPECTATIONS[key].model_validate(parameters, context=dict(CONTEXT)).judge(found, T0).verdict


def state(seconds, replicas, isr, *, adding=(), leader=1, partition=0, epoch=0):
    return event(
        seconds,
        "trace.log",
        f"orders-{partition}",
        topic="orders",
        partition=partition,
        replicas=list(replicas),
        adding=list(adding),
        removing=[],
        isr=list(isr),
        leader=leader,
        leader_epoch=epoch,
    )


def cluster(replicas, *, isr=None, leader=None, listed=(), logs=None, seconds=29.0):
    states = {"orders-0": {"replicas": replicas, "isr": isr or replicas, "leader": leader or replicas[0]}}
    logs = logs if logs is not None else {str(broker): ["orders-0"] for broker in replicas}
    return event(seconds, "cluster.found", "cluster", listed=list(listed), states=states, logs=logs)


MOVE = event(2, "move.started", "orders", partitions=1, targets={"0": [3, 1]})
CANCEL = event(4, "move.cancelled", "move", partitions=1, kept={"orders-0": [1, 2]})
PAUSE = {"fault": "broker-pause host=b2", "brokers": [2]}
UNHEALED = event(28, "fault.injecting", "", **PAUSE)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([MOVE, cluster([3, 1])], "pass"),
        ([MOVE, cluster([1, 3])], "fail"),  # another order
        ([MOVE, cluster([1, 2])], "fail"),
        ([MOVE, cluster([3, 1], listed=["orders-0"])], "fail"),
        ([MOVE, CANCEL, cluster([2, 1])], "pass"),  # a cancellation may change the order
        ([MOVE, CANCEL, cluster([1, 2, 3])], "fail"),
        ([MOVE, CANCEL, event(5, "move.started", "orders", targets={"0": [2, 3]}), cluster([2, 3])], "pass"),
        ([MOVE, event(3, "move.refused", "orders", error="x"), cluster([1, 2])], "pass"),
        # A second client cancelled it, or gave it another target.
        ([MOVE, event(3, "fault.injected", "", fault="reassignment-alter", brokers=[1]), cluster([1, 2])], "pass"),
        ([MOVE, event(3, "fault.refused", "", fault="reassignment-alter to=b2"), cluster([2, 1])], "pass"),
        ([event(1, "fault.injected", "", fault="reassignment-alter"), MOVE, cluster([1, 2])], "fail"),
        ([cluster([1, 2])], "inconclusive"),
        ([MOVE], "inconclusive"),
        ([MOVE, event(29, "cluster.found", "cluster", problem="no answer")], "inconclusive"),
        ([MOVE, UNHEALED, cluster([1, 2])], "inconclusive"),
    ],
)
def test_moves_ended(events, expected):
    assert verdict("moves_ended", run(*events)) == expected


def test_a_partition_that_no_request_named_keeps_its_replicas():
    def found(*placed, **topology):
        """Partitions of which the metadata log has a state from before the start, with their replicas at the end."""
        at_start = [state(-1, [1, 2], [1, 2], partition=p) for p in range(len(placed))]
        there = cluster(placed[0])
        for p, replicas in enumerate(placed):
            there.detail["states"][f"orders-{p}"] = {"replicas": replicas, "isr": replicas, "leader": replicas[0]}
        made = run(MOVE, *at_start, there)
        document = {**made.manifest.topology.document, **topology}
        made.manifest = replace(made.manifest, topology=replace(made.manifest.topology, document=document))
        return EXPECTATIONS["moves_ended"].model_validate({}, context=dict(CONTEXT)).judge(made, T0)

    assert found([3, 1], [1, 2]).verdict == "pass"
    assert found([3, 1], [2, 1]).verdict == "pass", "an order is no other placement"
    wrong = found([3, 1], [1, 2], [3, 2])
    assert (wrong.verdict, wrong.observed) == ("fail", 1)
    assert wrong.why == "orders-2 has the replicas [3, 2], not [1, 2]: no request named it"
    assert found([3, 1], [1, 2], [3, 2], software={"automq": {}}).verdict == "pass", "a controller moves them itself"


FULL = state(-1, [1, 2], [1, 2])
FALL = state(10, [1, 2], [1])


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([FULL, FALL], "fail"),
        ([FULL], "pass"),
        ([FULL, event(5, "fault.injecting", "", **PAUSE), FALL], "pass"),
        ([FULL, event(5, "fault.injecting", "", fault="broker-pause host=b3", brokers=[3]), FALL], "fail"),
        # A controller that stood still fences brokers whose heartbeats it missed.
        (
            [FULL, event(5, "fault.injecting", "", fault="broker-pause host=b3", brokers=[3], controller=True), FALL],
            "pass",
        ),
        # The leader's trouble explains it as well as the follower's.
        ([FULL, event(5, "fault.injecting", "", fault="nic-down host=b1", brokers=[1]), FALL], "pass"),
        (
            [FULL, event(-20, "fault.injecting", "", **PAUSE), event(-15, "fault.healed", "", **PAUSE), FALL],
            "fail",
        ),
        ([FULL, event(9, "broker.restarting", "b2", brokers=[2]), event(12, "broker.serving", "b2"), FALL], "pass"),
        # A replica that a move removed did not fall out of sync.
        ([FULL, state(8, [1, 3], [1, 3])], "pass"),
        ([], "inconclusive"),
    ],
)
def test_isr_explained(events, expected):
    assert verdict("isr_explained", run(*events)) == expected


def test_an_isr_that_keeps_min_insync_replicas_may_fall():
    events = [state(-1, [1, 2, 3], [1, 2, 3]), state(10, [1, 2, 3], [1, 2])]
    assert verdict("isr_explained", run(*events)) == "pass"


def written(*, since=0, until=30):
    """The log of orders-0 grows on b1 between two instants; every host is read once a second."""
    found = [Sample(at(t), host, "nic.rx.bytes", 0.0) for host in BROKERS for t in range(-1, 32)]
    grown = [float(min(max(0, t - since), until - since) * 1000) for t in range(-1, 32)]
    return found + [Sample(at(t), "b1", "log.bytes", grown[t + 1], "orders", 0) for t in range(-1, 32)]


OTHER = {"fault": "a-new-kind host=b3", "brokers": [3]}
SLOW = {"fault": "nic-rate host=b3 rate=20mbit", "brokers": [3]}
SKEW = event(5, "fault.injecting", "", fault="clock-skew host=b2 by=5s", brokers=[2])


@pytest.mark.parametrize(
    ("events", "samples", "expected"),
    [
        ([FULL, FALL], written(), "fail"),
        ([FULL, FALL], written(until=10), "pass"),  # the leader refuses records from then on
        ([FULL, FALL, state(15, [1, 2], [1, 2])], written(since=15), "pass"),
        ([FULL], written(), "pass"),
        # The follower's fault hides nothing; the leader's may keep it from the change.
        ([FULL, event(5, "fault.injecting", "", **PAUSE), FALL], written(), "fail"),
        ([FULL, event(5, "fault.injecting", "", fault="nic-down host=b1", brokers=[1]), FALL], written(), "pass"),
        ([FULL, SKEW, FALL], written(), "pass"),  # the controller's times may be wrong
        ([FULL, state(10, [1, 2], [1], leader=None)], written(), "pass"),
        # The controller is slow, and the leader knows of the change later.
        ([FULL, event(5, "fault.injecting", "", **SLOW, controller=True), FALL], written(), "pass"),
        ([FULL, event(5, "fault.injecting", "", **SLOW), FALL], written(), "fail"),
        ([FULL, event(5, "fault.injecting", "", **PAUSE, controller=True), FALL], written(), "fail"),
        # A reading that ends when the replica is in sync again has the first new records.
        ([FULL, FALL, state(15.02, [1, 2], [1, 2])], written(since=14), "pass"),
        ([FULL, FALL, state(15.06, [1, 2], [1, 2])], written(since=14), "fail"),
        # More replicas than there are cannot be in sync.
        ([state(-1, [1], [1])], written(), "pass"),
        ([state(-1, [1], [1]), state(5, [3, 1], [1], adding=[3])], written(), "fail"),
        # Its leader's host was read, and the log was not: growth would not be seen.
        ([FULL, FALL], [each for each in written() if each.metric != "log.bytes"], "inconclusive"),
        ([FULL, FALL, state(12, [1, 2], [1, 2])], [], "pass"),  # too short for two readings
        ([], written(), "inconclusive"),
    ],
)
def test_min_isr_enforced(events, samples, expected):
    assert verdict("min_isr_enforced", run(*events, samples=samples)) == expected


def test_the_minimum_in_sync_is_what_brokers_had_in_force_at_the_start():
    found = run(FULL, FALL, samples=written())
    found._by_kind["incident.started"][0]["detail"]["min_insync"] = {"orders": 1, "clicks": 2}
    assert verdict("min_isr_enforced", found) == "pass"
    assert verdict("isr_explained", found) == "pass"
    assert (found.least_in_sync("clicks"), found.least_in_sync("others")) == (2, 1)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([FULL, FALL], "pass"),
        ([FULL, state(3, [3, 1, 2], [1, 2], adding=[3]), state(5, [3, 1], [3, 1], leader=3, epoch=1)], "pass"),
        ([FULL, state(5, [3, 1], [3, 1, 2])], "fail"),  # a removed replica is in sync
        ([FULL, state(5, [3, 2], [3, 2], leader=1)], "fail"),  # the drained broker leads
        ([FULL, state(5, [1, 2], [2], leader=1)], "fail"),
        ([FULL, state(5, [1, 2], [1, 2], adding=[3])], "fail"),
        ([FULL, state(5, [1, 1], [1])], "fail"),
        ([FULL, state(5, [1, 2], [1, 2], epoch=1)], "fail"),  # the same record once more
        ([FULL, state(5, [1, 2], [1], epoch=1)], "pass"),  # the ISR changes, and the leader stays in a new epoch
        ([FULL, state(5, [1, 2], [1], leader=None, epoch=1), state(6, [1, 2], [1], epoch=2)], "pass"),
        ([], "inconclusive"),
    ],
)
def test_partitions_sound(states, expected):
    assert verdict("partitions_sound", run(*states)) == expected


def test_brokers_that_describe_an_unsound_partition():
    assert verdict("partitions_sound", run(FULL, cluster([3, 1], isr=[3, 1, 2]))) == "fail"
    assert verdict("partitions_sound", run(FULL, cluster([3, 1], isr=[3, 1, 2]), UNHEALED)) == "pass"


def test_a_restart_that_failed_has_ended():
    """A fault killed the broker while it restarted, and its heal started it again."""
    failed = [event(9, "broker.restarting", "b2", brokers=[2]), event(12, "broker.not_serving", "b2")]
    assert verdict("moves_ended", run(MOVE, *failed, cluster([3, 1]))) == "pass"
    assert verdict("moves_ended", run(MOVE, failed[0], cluster([3, 1]))) == "inconclusive"


def test_in_sync_at_end():
    assert verdict("in_sync_at_end", run(cluster([3, 1]))) == "pass"
    assert verdict("in_sync_at_end", run(cluster([3, 1], isr=[3]))) == "fail"
    assert verdict("in_sync_at_end", run(cluster([3, 1], isr=[3]), UNHEALED)) == "inconclusive"
    assert verdict("in_sync_at_end", run()) == "inconclusive"


def throttle(seconds, rate, listed="0:3"):
    detail = {"topic orders": {LIST: listed}, **{f"broker {broker}": {RATE: str(rate)} for broker in IDS.values()}}
    return [event(seconds, "throttle.setting", "", **detail), event(seconds + 0.2, "throttle.set", "", **detail)]


def copied(bytes_per_s, *, until=30):
    """The log of orders-0 grows on b3 from 5 s on; every host is read once a second."""
    found = [Sample(at(t), host, "nic.rx.bytes", 0.0) for host in BROKERS for t in range(-1, 32)]
    grown = [Sample(at(t), "b3", "log.bytes", float(max(0, t - 5) * bytes_per_s), "orders", 0) for t in range(4, until)]
    return found + grown


ADDING = state(1, [3, 1, 2], [1, 2], adding=[3])
JOINED = state(25, [3, 1], [3, 1])
RATE_CHANGE = [
    event(12, "throttle.setting", "", **{f"broker {b}": {RATE: "500000"} for b in IDS.values()}),
    event(12.1, "throttle.set", "", **{f"broker {b}": {RATE: "500000"} for b in IDS.values()}),
]
REMOVED = {"brokers": [1, 2, 3], "topics": ["orders"]}


@pytest.mark.parametrize(
    ("bytes_per_s", "events", "expected"),
    [
        (1_000_000, throttle(1, 1_000_000), "pass"),
        (3_000_000, throttle(1, 1_000_000), "fail"),
        (3_000_000, [], "inconclusive"),
        (3_000_000, throttle(1, 1_000_000, listed="0:2"), "inconclusive"),  # the replica is not listed
        (3_000_000, [*throttle(1, 1_000_000), state(4, [3, 1, 2], [1, 2, 3], adding=[3])], "inconclusive"),  # in sync
        (3_000_000, [*throttle(1, 4_000_000), *RATE_CHANGE], "fail"),
        (500_000, [*throttle(1, 4_000_000), *RATE_CHANGE], "pass"),
        # Unthrottled from 6 s on, as the operator wanted.
        (
            9_000_000,
            [
                *throttle(1, 1_000_000),
                event(6, "throttle.removing", "", **REMOVED),
                event(7, "throttle.removed", "", **REMOVED),
            ],
            "inconclusive",
        ),
        # A request that failed: nothing is known of the rates from then on.
        (
            9_000_000,
            [*throttle(1, 1_000_000), event(5, "throttle.setting", "", **{"broker 3": {RATE: "1"}})],
            "inconclusive",
        ),
        # A broker that was restarted has forgotten what it counted, and counts again from then on.
        (
            3_000_000,
            [
                *throttle(1, 1_000_000),
                event(4, "broker.restarting", "b3", brokers=[3]),
                event(7, "broker.serving", "b3"),
            ],
            "fail",
        ),
        (2_000_000, [*throttle(1, 1_000_000), event(9, "broker.restarting", "b3", brokers=[3])], "pass"),
        (8_000_000, [*throttle(1, 1_000_000), event(9, "broker.restarting", "b3", brokers=[3])], "fail"),
        (
            3_000_000,
            [
                *throttle(1, 1_000_000),
                event(9, "fault.injecting", "", fault="nic-rate host=b3 rate=50mbit", brokers=[3]),
            ],
            "fail",
        ),
        (3_000_000, [*throttle(1, 1_000_000), event(9, "fault.injecting", "", **OTHER)], "pass"),
        (3_000_000, [*throttle(1, 1_000_000), event(9, "fault.injecting", "", **OTHER, keeps_quota=True)], "fail"),
    ],
)
def test_throttle_bound(bytes_per_s, events, expected):
    found = run(FULL, ADDING, JOINED, *events, samples=copied(bytes_per_s))
    assert verdict("throttle_bound", found, **BOUND) == expected


BOUND = {"response": "1MiB", "fetchers": 2}
LEADER_RATE = "leader.replication.throttled.rate"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (throttle(1, 42_000_000), "pass"),
        (throttle(1, 44_000_000), "inconclusive"),
        ([*throttle(1, 44_000_000), *RATE_CHANGE], "pass"),  # the windows after the change may be above their bound
    ],
)
def test_a_bound_that_the_nics_cannot_break_is_not_said_to_hold(events, expected):
    """The NICs carry 47 MB/s: it passed for any throttle, in force or not."""
    found = run(FULL, ADDING, JOINED, *events, samples=copied(500_000))
    assert verdict("throttle_bound", found, **BOUND) == "pass"  # no NIC was measured
    found.manifest = replace(found.manifest, nics=nics())
    assert verdict("throttle_bound", found, **BOUND) == expected


def test_bytes_of_the_move_s_first_moment_count():
    """A partition that the quota ignores is copied before the first reading, at the pace of the NIC."""
    start = [*throttle(4, 1_000_000), event(4.3, "throttle.in_force", "", brokers=[1, 2, 3])]
    samples = [Sample(at(t), host, "nic.rx.bytes", 0.0) for host in BROKERS for t in range(-1, 32)]
    samples += [Sample(at(t), "b3", "log.bytes", 20_000_000.0, "orders", 0) for t in range(5, 32)]
    adding = state(4.4, [3, 1, 2], [1, 2], adding=[3])
    assert verdict("throttle_bound", run(FULL, adding, JOINED, *start, samples=samples), **BOUND) == "fail"
    before = state(4.1, [3, 1, 2], [1, 2], adding=[3])  # the copy may have begun before the throttle was in force
    found = run(FULL, before, JOINED, *start, samples=samples)
    assert verdict("throttle_bound", found, **BOUND) == "inconclusive"


@pytest.mark.parametrize(("written", "expected"), [(0, "fail"), (19_000_000, "pass")])
def test_a_copy_that_is_in_sync_by_the_next_reading_counts_less_what_was_written(written, expected):
    start = [*throttle(1, 1_000_000), event(1.3, "throttle.in_force", "", brokers=[1, 2, 3])]
    states = [state(4.1, [3, 1, 2], [1, 2], adding=[3]), state(4.8, [3, 1], [3, 1], leader=3)]
    samples = [Sample(at(t), host, "nic.rx.bytes", 0.0) for host in BROKERS for t in range(-1, 32)]
    samples += [Sample(at(t), "b3", "log.bytes", 20_000_000.0, "orders", 0) for t in range(5, 32)]
    samples += [Sample(at(t), "b1", "log.bytes", float(written * (t > 4)), "orders", 0) for t in range(-1, 32)]
    assert verdict("throttle_bound", run(FULL, *states, *start, samples=samples), **BOUND) == expected


@pytest.mark.parametrize(("host", "expected"), [("b2", "fail"), ("b3", "pass")])
def test_another_broker_s_restart_leaves_the_quota(host, expected):
    restart = [event(9, "broker.restarting", host, brokers=[IDS[host]]), event(10, "broker.serving", host)]
    found = run(FULL, ADDING, JOINED, *throttle(1, 1_000_000), *restart, samples=copied(3_000_000, until=18))
    assert verdict("throttle_bound", found, **BOUND) == expected


@pytest.mark.parametrize(("leader", "expected"), [(1, "fail"), (2, "inconclusive")])
def test_a_leader_that_sends_to_several(leader, expected):
    """Each follower receives less than its bound; the leader sends more than its own."""
    detail = {"topic orders": {LIST.replace("follower", "leader"): "0:1"}, "broker 1": {LEADER_RATE: "1000000"}}
    events = [event(1, "throttle.setting", "", **detail), event(1.2, "throttle.set", "", **detail)]
    adding = state(1, [3, 2, 1], [1], adding=[3, 2], leader=leader)
    samples = [Sample(at(t), host, "nic.rx.bytes", 0.0) for host in BROKERS for t in range(-1, 32)]
    samples += [
        Sample(at(t), host, "log.bytes", float(max(0, t - 5) * 1_200_000), "orders", 0)
        for host in ("b2", "b3")
        for t in range(4, 30)
    ]
    found = run(adding, *events, samples=samples)
    assert verdict("throttle_bound", found, **BOUND) == expected


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ({"equal": True, "differences": [], "problem": ""}, "pass"),
        ({"equal": False, "differences": ["orders-0: leader 1 in the log, 2 described"], "problem": ""}, "fail"),
        ({"equal": None, "differences": [], "problem": "no segment"}, "inconclusive"),
    ],
)
def test_metadata_replayed(detail, expected):
    compared = event(29, "trace.compared", "metadata log", **detail)
    assert verdict("metadata_replayed", run(compared)) == expected
    assert verdict("metadata_replayed", run(compared, UNHEALED)) == "inconclusive"


def test_logs_removed():
    stray = {"1": ["orders-0"], "2": ["orders-0"], "3": ["orders-0"]}
    assert verdict("logs_removed", run(cluster([3, 1]))) == "pass"
    assert verdict("logs_removed", run(cluster([3, 1], logs=stray))) == "fail"
    assert verdict("logs_removed", run()) == "inconclusive"


def test_preferred_leaders():
    assert verdict("preferred_leaders", run(cluster([3, 1]))) == "pass"
    assert verdict("preferred_leaders", run(cluster([3, 1], leader=1))) == "fail"
    # A preferred replica that is out of sync cannot lead; that it is out of sync is judged elsewhere.
    assert verdict("preferred_leaders", run(cluster([3, 1], isr=[1], leader=1))) == "pass"
    # It may have returned after the election.
    late, in_time = (event(28, "replicas.converged", "replicas", missing=["x"], in_time=each) for each in (False, True))
    assert verdict("preferred_leaders", run(late, cluster([3, 1], leader=1))) == "inconclusive"
    assert verdict("preferred_leaders", run(in_time, cluster([3, 1], leader=1))) == "fail"


def test_records_in_another_order_are_not_intact():
    found = replace(replayed().manifest, facts=manifest(records=Records(10, 10, 0, 0, 0, reordered=2)).facts)
    judged = EXPECTATIONS["records_intact"].model_validate({}).judge(replayed(records=found.facts.records), T0)
    assert judged.verdict == "fail"
    assert "2 after a later record" in judged.why


@pytest.mark.parametrize(
    ("acknowledged", "records", "expected"),
    [
        (100, Records(10, 10, 0, 2, 0), "fail"),
        (90, Records(10, 10, 0, 2, 0), "inconclusive"),
        (90, Records(10, 9, 1, 0, 0), "fail"),
        (90, Records(10, 10, 0, 0, 0), "pass"),
    ],
)
def test_a_producer_that_gave_up_may_have_sent_records_twice(acknowledged, records, expected):
    done = event(30, "load.done", "clicks", sent=100, acknowledged=acknowledged, error=None)
    found = EXPECTATIONS["records_intact"].model_validate({}).judge(replayed([], [done], records=records), T0)
    assert found.verdict == expected


def test_a_busy_machine_leaves_timed_invariants_open_and_a_missing_nic_only_shaped_ones():
    text = DURABLE.replace(
        "      - throttle_removed: {}\n", "      - isr_explained: {}\n      - throttle_removed: {}\n"
    )
    incident = loads(text.replace("[throttle-removed]", "[]"), "small.yaml").broken
    acted = [event(0, "incident.entry", entry.name, planned_s=0.0, actual_s=0.0) for entry in incident.entries]
    found = judge(manifest(incident), *tables(machine(0.2), [FULL, FALL, *acted]))
    by_name = {each.name: each for each in found.criteria}
    assert by_name["isr-explained"].verdict == "fail"
    assert by_name["move-done"].verdict == "inconclusive"
    found = judge(manifest(incident), *tables(machine(0.99), [FULL, FALL, *acted]))
    assert {each.name: each.verdict for each in found.criteria}["isr-explained"] == "inconclusive"


def test_a_loose_entry_may_fail_or_act_late():
    text = SMALL.replace("    at: $hurry\n", "    at: $hurry\n    loose: true\n")
    incident = loads(text, "small.yaml").broken
    acted = [
        event(0, "incident.entry", entry.name, planned_s=0.0, actual_s=3.0 if entry.loose else 0.0)
        for entry in incident.entries
        if entry.name != "alarm"
    ]
    failed = event(3, "incident.failed", "throttle", error="refused")
    found = judge(manifest(incident), *tables([], [*acted, failed]))
    assert found.criteria[0].verdict == "pass"
    strict = loads(SMALL, "small.yaml").broken
    found = judge(manifest(strict), *tables([], [*acted, failed]))
    assert found.criteria[0].verdict == "inconclusive"
