"""Phases and pairs, from events made by hand."""

from results.contract.schema import Event
from testbed.search.coverage import Coverage, aims, pace, pairs, phases_of
from testbed.search.draft import Draft, DrawnStep, DrawnTopic

US = 1_000_000
TOPICS = {"orders": DrawnTopic(2, ("b1", "b2"), 8000, 1)}


def event(seconds, kind, name="", **detail):
    return Event(round(seconds * US), kind, name, None, detail)


def state(seconds, partition, adding):
    return event(seconds, "trace.log", f"orders-{partition}", topic="orders", partition=partition, adding=adding)


MOVE = [
    event(1, "move.started", "orders", targets={}),
    state(1.1, 0, [3]),
    state(1.1, 1, [3]),
    state(3, 0, []),
    state(5, 1, []),
    event(6, "move.done", "orders"),
]


def test_the_phases_of_a_move():
    found = [(us / US, phase) for us, phase in phases_of(MOVE)]
    assert found == [(0, "before"), (1, "copying"), (3, "completing"), (5, "removing"), (6, "after")]


def test_a_cancelled_move():
    found = [phase for _us, phase in phases_of([*MOVE[:3], event(2, "move.cancelled", "move")])]
    assert found == ["before", "copying", "cancelled"]


def test_a_fault_is_in_every_phase_in_which_it_is_in_force():
    fault = {"fault": "nic-rate host=b1 rate=50mbit"}
    draft = Draft("three-brokers", TOPICS, 0, (DrawnStep("move"), DrawnStep("cancel")), 12.0)
    events = [
        *MOVE,
        event(2, "fault.injected", "", **fault),
        event(5.5, "fault.healed", "nic-rate", **fault),
        event(6.5, "incident.entry", "step-2"),
    ]
    assert pairs(events, draft) == {
        ("nic-rate", "copying"),
        ("nic-rate", "completing"),
        ("nic-rate", "removing"),
        ("cancel", "after"),
    }


def test_what_was_not_seen_is_counted_as_new():
    draft = Draft("three-brokers", TOPICS, 0, (DrawnStep("move", at_s=1.0), DrawnStep("cancel", share=50)), 12.0)
    coverage = Coverage()
    assert coverage.new(draft) == (len(aims(draft)), 2) == (2, 2)
    coverage.add([("cancel", "copying")])
    assert coverage.new(draft) == (1, 2)
    assert ("cancel", "after") in coverage.missing(["cancel"])


def test_a_pair_that_no_try_had_at_this_pace_is_new_at_it():
    """A throttle that does not hold shows only in a copy that lasts longer than the quota's window."""
    given = {"topics": ["orders"], "hosts": ["b3"]}
    at_pace = {
        "unlimited": DrawnStep("move", given),
        "short": DrawnStep("move", {**given, "throttle": "4000kB/s"}),
        "long": DrawnStep("move", {**given, "throttle": "300kB/s"}),
    }
    coverage = Coverage()
    for name, move in at_pace.items():
        draft = Draft("three-brokers", TOPICS, 0, (move, DrawnStep("cancel", at_s=2.0)), 12.0)
        assert pace(draft) == name
        assert coverage.new(draft)[1] == 2
        coverage.aim(draft)
        assert coverage.new(draft)[1] == 0
    assert pace(draft.with_steps([])) == "unlimited"
