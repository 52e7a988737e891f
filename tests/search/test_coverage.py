"""Phases and pairs, from events made by hand."""

from results.contract.schema import Event
from testbed.search.coverage import Coverage, aims, pairs, phases_of
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
    assert coverage.new(draft) == len(aims(draft)) == 2
    coverage.add([("cancel", "copying")])
    assert coverage.new(draft) == 1
    assert ("cancel", "after") in coverage.missing(["cancel"])
