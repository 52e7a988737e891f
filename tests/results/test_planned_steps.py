"""The planned steps beside those that the controller logged."""

from itertools import pairwise

import pytest

from results.contract.schema import Event, events_table, samples_table
from results.criteria.catalogue.steps_as_planned import judge_steps_taken
from results.criteria.planned_steps import PLANNED, measure_steps_taken
from results.criteria.sample_series import RunSeries
from testbed.reassignment.batching.step import PartitionView, steps_to_target

KIP = [(0, 1, 2, 3, 4), (5, 0, 1, 2, 3, 4), (5, 6, 2, 3, 4), (5, 6, 7, 8, 4), (5, 6, 7, 8, 9)]
"""The example of KIP-435, R = 2."""


def logged(states, partition=0):
    """Return the records of the controller that carries out these steps: each is requested, then complete."""
    records = [(states[0], (), ())]
    for before, after in pairwise(states):
        adding = tuple(broker for broker in after if broker not in before)
        removing = tuple(broker for broker in before if broker not in after)
        if adding:
            records.append(((*after, *removing), adding, removing))
        records += [(after, (), ()), (after, (), ())]  # another leader: a record without a step
    return [
        Event(
            1_000_000 * number,
            "trace.log",
            f"t-{partition}",
            None,
            {
                "topic": "t",
                "partition": partition,
                "offset": number,
                "replicas": list(replicas),
                "adding": list(adding),
                "removing": list(removing),
                "isr": list(replicas),
                "leader": replicas[0],
            },
        )
        for number, (replicas, adding, removing) in enumerate(records)
    ]


def planned(states, partition=0):
    detail = {"topic": "t", "partition": partition, "replicas": [list(state) for state in states]}
    return Event(0, PLANNED, f"t-{partition}", None, detail)


def judged(*events):
    return judge_steps_taken(measure_steps_taken(RunSeries(samples_table([]), events_table(events))))


def test_the_example_of_the_kip_is_recognised_step_by_step():
    view = PartitionView(KIP[0], KIP[-1], KIP[0], 2)
    assert [KIP[0], *(step.replicas for step in steps_to_target(view, range(10), 2))] == KIP
    (finding,) = judged(planned(KIP), *logged(KIP))
    assert (finding.verdict, finding.observed) == ("pass", 0.0)
    assert "in at most 4 steps" in finding.why


@pytest.mark.parametrize(
    "taken",
    [
        KIP[:-1],  # the last step is missing
        [KIP[0], KIP[1], KIP[-1]],  # more replicas at once
        [*KIP[:2], (5, 7, 2, 3, 4), *KIP[3:]],  # another replica first
        [*KIP[:4], (6, 5, 7, 8, 9)],  # another preferred leader
        [*KIP, KIP[0]],  # and back
    ],
)
def test_other_steps_fail_and_both_ways_are_named(taken):
    (finding,) = judged(planned(KIP), planned(KIP, 1), *logged(KIP, 1), *logged(taken))
    assert (finding.verdict, finding.observed) == ("fail", 1.0)
    assert "t-0: (0,1,2,3,4) → (5,0,1,2,3,4)" in finding.why
    assert "not (0,1,2,3,4) →" in finding.why


def test_a_log_that_was_not_read_is_inconclusive():
    (finding,) = judged(planned(KIP), *logged(KIP, 1))
    assert (finding.verdict, finding.why) == ("inconclusive", "the metadata log has nothing of t-0")


def test_the_return_of_a_move_is_no_step_of_it():
    later = 100
    back = [
        event._replace(
            ts_us=event.ts_us + later * 1_000_000, detail={**event.detail, "offset": event.detail["offset"] + later}
        )
        for event in logged([KIP[-1], KIP[0]])[1:]
    ]
    (finding,) = judged(planned(KIP), *logged(KIP), Event(90_000_000, "return.started"), *back)
    assert finding.verdict == "pass"


def test_without_a_plan_or_with_a_broker_that_left_nothing_is_judged():
    assert judged(*logged(KIP)) == []
    assert judged(planned(KIP), *logged(KIP[:2]), Event(5, "broker.leaving", "b3")) == []


OTHER = [KIP[0], KIP[1], (5, 6, 0, 1, 2, 3, 4), *KIP[2:]]
"""The way of a partition that adds a replica sooner: after its second step too few replicas were in sync."""


@pytest.mark.parametrize(
    ("left_at", "verdict"), [(99, "fail"), (7, "fail"), (4, "inconclusive"), (1, "inconclusive")], ids=str
)
def test_a_partition_of_which_a_replica_left_the_isr_may_go_another_way_from_then_on(left_at, verdict):
    events = logged(OTHER)
    for event in events[left_at:]:
        event.detail["isr"] = [broker for broker in event.detail["isr"] if broker != 4]
    (finding,) = judged(planned(KIP), *events)
    assert finding.verdict == verdict
    assert (verdict == "inconclusive") is finding.why.startswith("a replica left the ISR of t-0, and the steps after")
    (finding,) = judged(planned(OTHER), *events)
    assert finding.verdict == "pass"


def test_a_replica_that_left_the_isr_before_the_move_explains_no_other_way():
    first, *others = logged(OTHER)
    created = first._replace(detail={**first.detail, "offset": -1})
    left = first._replace(ts_us=100_000, detail={**first.detail, "isr": [0, 1, 2, 3]})
    (finding,) = judged(planned(KIP), created, left, *others)
    assert finding.verdict == "inconclusive"
    (finding,) = judged(planned(KIP), created, left, Event(600_000, "move.started"), *others)
    assert finding.verdict == "fail"
