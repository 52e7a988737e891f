"""Expectations, judged over recordings made by hand: each passes, fails, and does not judge what it did not see."""

import pytest

from results.contract.schema import Event, Records, Sample
from testbed.incidents.engine import Acted, Played
from testbed.incidents.evidence import Evidence, growth_within, highest_rate, percentile
from testbed.incidents.expectations import parse_expectation
from testbed.incidents.judgement import as_foretold, judge_incident
from testbed.incidents.timeline import Due
from tests.incidents.files import small

S = 1_000_000
T0 = 1_700_000_000 * S


def at(seconds):
    return T0 + round(seconds * S)


def evidence(samples=(), events=(), ends=30.0, **more):
    return Evidence(list(samples), list(events), T0, at(ends), **more)


def every_second(host, metric, value, *, until=30, topic=None, partition=None, without=()):
    return [
        Sample(at(t), host, metric, float(value(t)), topic, partition) for t in range(-1, until + 2) if t not in without
    ]


def logs(host, topic, value, **more):
    """A topic's log on a host, beside the NIC counter that is read with it."""
    nic = every_second(host, "nic.rx.bytes", lambda t: 0.0, **more)
    return [*nic, *every_second(host, "log.bytes", value, topic=topic, partition=0, **more)]


def verdict(text, found, since=0.0):
    return parse_expectation(text).judge(found, at(since)).verdict


def event(seconds, kind, name="", **detail):
    return Event(at(seconds), kind, name, None, detail)


STEADY = logs("b2", "orders", lambda t: max(0, t) * 5e6)
BURST = logs("b2", "orders", lambda t: min(1.0, max(0, t) / 3) * 120e6)


@pytest.mark.parametrize(
    ("text", "samples", "expected"),
    [
        ("rate of orders on b2 receive <= 6MB/s over 11s", STEADY, "pass"),
        ("rate of orders on b2 receive <= 4.9MB/s over 11s", STEADY, "fail"),
        ("rate of orders on b2 receive <= 6MB/s over 11s", BURST, "fail"),
        (
            "rate of clicks on b2 receive <= 6MB/s over 11s",
            STEADY,
            "inconclusive",
        ),  # nothing came, nothing was held back
        ("rate of orders on b3 receive <= 6MB/s over 11s", STEADY, "inconclusive"),
        (
            "rate of orders on b2 receive <= 6MB/s over 11s",
            logs("b2", "orders", lambda t: max(0, t) * 5e6, without=range(10, 15)),
            "inconclusive",
        ),
        ("rate on b1 transmit <= 6MB/s over 11s", every_second("b1", "nic.tx.bytes", lambda t: t * 5e6), "pass"),
        ("rate on b1 transmit <= 6MB/s over 11s", every_second("b1", "nic.tx.bytes", lambda t: t * 7e6), "fail"),
        ("isr never below 2 of orders", every_second("driver", "topic.isr", lambda t: 2, topic="orders"), "pass"),
        ("isr never below 2", every_second("driver", "topic.isr", lambda t: 2 - (t == 9), topic="orders"), "fail"),
        (
            "isr never below 2 of clicks",
            every_second("driver", "topic.isr", lambda t: 2, topic="orders"),
            "inconclusive",
        ),
        (
            "isr never below 2",
            every_second("driver", "topic.isr", lambda t: 2, topic="orders", without=range(5, 10)),
            "inconclusive",
        ),
        ("isr never below 2", every_second("driver", "topic.isr", lambda t: 2, topic="o", until=20), "inconclusive"),
        (
            "fully replicated at the end",
            every_second("driver", "topic.under_replicated", lambda t: t < 20, topic="orders"),
            "pass",
        ),
        (
            "fully replicated at the end",
            every_second("driver", "topic.under_replicated", lambda t: t > 20, topic="orders"),
            "fail",
        ),
        (
            "fully replicated at the end",
            every_second("driver", "topic.under_replicated", lambda t: 0, topic="orders", until=10),
            "inconclusive",
        ),
        ("fully replicated at the end", [], "inconclusive"),
    ],
)
def test_what_samples_show(text, samples, expected):
    assert verdict(text, evidence(samples)) == expected


def test_only_what_comes_after_the_entry_counts():
    late = evidence(BURST)
    assert verdict("rate of orders on b2 receive <= 6MB/s over 11s", late, since=5.0) == "inconclusive"
    broken = evidence(every_second("driver", "topic.isr", lambda t: 2 - (t == 3), topic="orders"))
    assert verdict("isr never below 2", broken, since=5.0) == "pass"


@pytest.mark.parametrize(
    ("mbit", "text", "expected"),
    [
        (95, "nic-bound b1 receive", "pass"),
        (95, "not nic-bound b1 receive", "fail"),
        (50, "not nic-bound b1 receive", "pass"),
        (50, "nic-bound b1 receive", "fail"),
        (95, "nic-bound b2 receive", "inconclusive"),
    ],
)
def test_which_limit_binds(mbit, text, expected):
    found = every_second("b1", "nic.rx.bytes", lambda t: min(t, 12) * mbit * 125_000)
    assert verdict(text, evidence(found, nic_bps={"b1": (10**9, 10**8)})) == expected
    uplinks = every_second("b1", "uplink.rx.bytes", lambda t: min(t, 12) * mbit * 125_000)
    assert verdict(text.replace("nic", "uplink"), evidence(uplinks, uplink_bps={"b1": (10**9, 10**8)})) == expected


MOVED = [event(2, "move.started", "orders"), event(20, "move.done", "orders")]
AGAIN = [event(2, "move.started", "orders"), event(12, "move.done", "orders"), event(20, "move.started", "orders")]


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
        ("move done within 20s", MOVED, "pass"),
        ("move done within 17s", MOVED, "fail"),
        ("move done within 25s", MOVED[:1], "fail"),
        ("move done within 40s", MOVED[:1], "inconclusive"),
        ("move done within 40s", [], "inconclusive"),
        ("move of clicks done within 20s", MOVED, "inconclusive"),
        ("move done within 40s", AGAIN, "inconclusive"),
        ("move done within 25s", AGAIN, "fail"),
        ("move done within 25s", [*AGAIN, event(26, "move.done", "orders")], "pass"),
        ("throttle in force before the move", [*in_force(1), *MOVED], "pass"),
        ("throttle in force before the move", [*MOVED, *in_force(4)], "fail"),
        ("throttle in force before the move", [*MOVED, *in_force(2.2)], "fail"),
        ("throttle in force before the move", MOVED, "fail"),
        ("throttle in force before the move", in_force(1), "inconclusive"),
        ("throttle in force before the move", [*in_force(1, "clicks"), *MOVED], "fail"),
        ("throttle in force before the move", [*in_force(-3), *MOVED], "fail"),
        ("throttle in force before the move", [*in_force(1), REMOVED, *MOVED], "fail"),
        ("throttle in force before the move", [*in_force(1), RAISED, *MOVED], "fail"),
        ("throttle in force before the move", [*in_force(1), *in_force(2.2, "clicks"), *MOVED], "pass"),
        ("throttle in force before the move", [*in_force(1), *in_force(2.2, "clicks", "9"), *MOVED], "fail"),
        ("throttle in force before the move", [*in_force(1), *MOVED, event(25, "move.started", "clicks")], "fail"),
        (
            "throttle in force before the move",
            [*in_force(1), *MOVED, event(21, "throttle.removed", brokers=[1], topics=["orders"]), *AGAIN[2:]],
            "pass",
        ),
        (
            "throttle in force before the move",
            [*in_force(1), *MOVED, event(19, "throttle.removed", brokers=[1], topics=["orders"]), *AGAIN[2:]],
            "fail",
        ),
        ("throttle removed", [event(30, "throttle.found", left=[], unread=[])], "pass"),
        ("throttle removed", [event(30, "throttle.found", left=["broker 1: rate"], unread=[])], "fail"),
        ("throttle removed", [event(30, "throttle.found", left=[], unread=["no answer"])], "inconclusive"),
        ("throttle removed", [], "inconclusive"),
        ("every record acknowledged", [event(31, "load.done", sent=9, acknowledged=9, error=None)], "pass"),
        ("every record acknowledged", [event(31, "load.done", sent=9, acknowledged=8, error="x")], "fail"),
        ("every record acknowledged", [], "inconclusive"),
    ],
)
def test_what_events_show(text, events, expected):
    assert verdict(text, evidence(events=events), since=2.0) == expected


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
    ],
)
def test_records(records, expected):
    assert verdict("no records lost", evidence(records=records)) == expected


def test_produce_latency_counts_from_the_entry_to_the_end_of_the_replay():
    slow = [Sample(at(t / 10), "driver", "load.latency", 2.0 if t < 100 else 0.02, "c") for t in range(300)]
    after = [Sample(at(40 + t / 10), "driver", "load.latency", 9.0, "c") for t in range(300)]
    found = evidence([*slow, *after])
    assert verdict("produce latency of 99% <= 500ms", found) == "fail"
    assert verdict("produce latency of 60% <= 500ms", found) == "pass"
    assert verdict("produce latency of 99% <= 500ms", found, since=10.0) == "pass"
    assert verdict("produce latency of 99% <= 500ms", found, since=25.0) == "inconclusive"


def test_windows_and_percentiles():
    steps = [(t * S, float(v)) for t, v in enumerate((0, 0, 30, 40, 41, 41))]
    assert growth_within(steps, 1.0) == (30.0, 1 * S)
    assert growth_within(steps, 2.0) == (40.0, 1 * S)
    assert growth_within(steps[:1], 2.0) is None
    assert highest_rate(steps, 2.0) == (20.0, 1 * S)
    assert highest_rate(steps, 9.0) is None
    assert [percentile(range(1, 101), share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]


# ---- the whole


def acted(incident, *, late_s=0.0, error=None, without=()):
    return tuple(
        Acted(Due(entry, 2.0, 2.0), 2.0 + late_s, error) for entry in incident.entries if entry.name not in without
    )


GOOD = evidence(
    every_second("driver", "topic.isr", lambda t: 1, topic="orders", until=60),
    [*MOVED, event(60, "throttle.found", left=["broker 1: rate"], unread=[])],
    ends=60.0,
    records=Records(9, 9, 0, 0, 0),
)


def judged(played, found=GOOD):
    incident = small().faulty
    return {c.name: c.verdict for c in judge_incident(incident, played, found)}


def test_a_replay_that_went_as_written_is_judged_and_compared_with_what_the_file_foretells():
    incident = small().faulty
    played = Played(acted(incident), (), 60.0)
    assert judged(played) == {
        "timeline": "pass",
        "move-done": "pass",
        "isr": "pass",
        "records-intact": "pass",
        "throttle-removed": "fail",
    }
    assert as_foretold(incident, judge_incident(incident, played, GOOD)) is None
    remedy = small().remedy
    assert as_foretold(remedy, judge_incident(incident, played, GOOD)) == "failed and should not have: throttle-removed"


@pytest.mark.parametrize(
    "played",
    [
        Played(acted(small().faulty, late_s=0.2), (), 60.0),
        Played(acted(small().faulty, error="broker-kill host=b3: it did not take effect"), (), 60.0),
        Played(acted(small().faulty, without=("lost",)), ("lost",), 60.0),
    ],
    ids=["late", "an action failed", "a trigger never came"],
)
def test_another_incident_than_the_file_says_is_not_judged(played):
    assert set(judged(played).values()) == {"inconclusive"}
    incident = small().faulty
    told = as_foretold(incident, judge_incident(incident, played, GOOD))
    assert told is not None
    assert told.startswith("could not be judged: ")
