"""Who gives what to whom when brokers join or leave."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.errors import UsageError
from testbed.experiments.catalogue.scaling import (
    balanced,
    scale_in_layout,
    scale_out_layout,
    shared_out,
)
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.layout import assignment, plan
from testbed.kafka.types import TopicPartition
from testbed.reassignment.planners import add, cost, drain
from testbed.topology.find import find

IDS = {"b1": 1, "b2": 2, "b3": 3, "b4": 4}


def before(groups):
    return {TopicPartition(t, p): tuple(r) for t, ps in assignment(groups, IDS).items() for p, r in ps.items()}


def after(groups):
    return Counter(broker for group in groups for _p in group.partitions for broker in group.target)


def moves(groups):
    return plan([group for group in groups if group.moves], IDS)


@pytest.mark.parametrize("count", [6, 12, 13, 100])
@pytest.mark.parametrize(("some", "others"), [(["b1", "b2"], ["b3"]), (["b1", "b2"], ["b3", "b4"]), (["b1"], ["b2"])])
@pytest.mark.parametrize("planner", [add, drain])
def test_each_broker_has_its_share_and_no_more_is_moved_than_a_planner_would(count, some, others, planner):
    every = [*some, *others]
    now, then = (some, every) if planner is add else (every, some)
    groups = balanced("t", range(count), now, then)
    assert sorted(tp.partition for group in groups for tp in group.tps()) == list(range(count))
    shares = after(groups)
    assert set(shares) == {*then}
    assert max(shares.values()) - min(shares.values()) <= 1
    racks = {IDS[host]: "r1" for host in every}
    least = cost(planner(before(groups), racks, [IDS[host] for host in others]), before(groups), {})
    assert cost(moves(groups), before(groups), {}).replicas == least.replicas


def test_bytes_and_what_is_written_are_shared_out_by_partitions():
    groups = shared_out(balanced("t", range(12), ["b1", "b2"], ["b1", "b2", "b3"]), 1200, 24.0)
    assert {len(group.partitions) * 100 for group in groups} == {group.bytes for group in groups}
    assert sum(group.inbound_bytes_per_s for group in groups) == pytest.approx(24.0)


@pytest.mark.parametrize("name", ["scale-out", "scale-in"])
def test_a_third_of_the_partitions_moves(name):
    experiment = find_experiment(name)
    layout = scale_out_layout if name == "scale-out" else scale_in_layout
    scene = layout(read_settings(experiment, "ci", []), ["b1", "b2", "b3"])
    assert scene.partitions == 4
    gives = {group.leader for group in scene.throttled if group.moves}
    assert gives == ({"b3"} if name == "scale-in" else {"b1", "b2"})


def test_a_topology_whose_hosts_cannot_join_or_leave_is_refused_before_anything_is_made():
    """Otherwise the run would end with this error after the move, and leave nothing in the store."""
    three, two = find("s3-three-brokers"), find("s3")
    leaving, joining = find_experiment("scale-in"), find_experiment("scale-out")
    settings = read_settings(leaving, "ci", [])
    leaving.fits(three, settings)
    joining.fits(two, settings)
    with pytest.raises(UsageError, match="b1 has the role both: only a broker or a client can leave"):
        leaving.fits(replace(three, hosts=three.hosts[::-1]), settings)
    for experiment, ready in ((leaving, three), (joining, two)):
        existing = SimpleNamespace(
            name="mine",
            hosts=ready.hosts,
            brokers=ready.brokers,
            automq=None,
            remote_storage=None,
            exists=True,
            remote_machines=(),
        )
        with pytest.raises(UsageError, match="mine is on machines that exist: a host can join and leave only"):
            experiment.check(existing, settings)
