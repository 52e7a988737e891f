"""KIP-435's own scenes: partitions that are moved whole, from one half of the brokers to the other, under load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from testbed.experiments.during import During
from testbed.experiments.experiment import Experiment, Parameter, SuiteScenario, whole
from testbed.experiments.kip73 import (
    Hosts,
    Settings,
    inbound,
    lasting,
    nothing_else,
    number,
    parameters,
    scenario,
    scene,
)
from testbed.experiments.scene import Group, Scene
from testbed.experiments.watched import Watched

PARTITIONS = 20


def whole_move(settings: Settings, hosts: Hosts) -> Scene:
    """Every partition from the first half of the hosts to the other half; each of the first half leads as many.

    (A, B) → (C, D) and (B, A) → (D, C), for instance.
    """
    half = len(hosts) // 2
    old, new, count = hosts[:half], hosts[half:], int(number(settings, "partitions"))
    each = number(settings, "inbound") / count
    groups = []
    for turn in range(half):
        mine = range(count * turn // half, count * (turn + 1) // half)
        current, target = (tuple(part[turn:]) + tuple(part[:turn]) for part in (old, new))
        groups.append(Group("kip435", mine, current, target, len(mine), each * len(mine)))
    return _under(settings, groups, old[0], new[0])


def led_by_one(settings: Settings, hosts: Hosts) -> Scene:
    """The same, all led by the first host: what one leader has to send is what it is about."""
    half = len(hosts) // 2
    partitions = range(int(number(settings, "partitions")))
    group = Group("kip435", partitions, tuple(hosts[:half]), tuple(hosts[half:]), 1, number(settings, "inbound"))
    # An unlisted control would take a good part of what the leader's NIC carries, and of what is compared here.
    return _under(settings, [group], hosts[0], hosts[half], control=False)


def _under(settings: Settings, groups: Sequence[Group], source: str, target: str, *, control: bool = True) -> Scene:
    found = replace(scene(groups, source, target, control=control), min_insync=int(number(settings, "min-insync")))
    return lasting(found, number(settings, "rate"), number(settings, "preload"))


def whole_scenario(
    name: str,
    summary: str,
    *,
    factor: int,
    more: Sequence[Parameter] = (),
    rate: str,
    written: str,
    preload: str,
    fetch: str = "tuned",
    profiles: Mapping[str, Mapping[str, str]],
    stage: Callable[[Settings, Hosts], Scene] = whole_move,
    during: Callable[[Settings, Hosts], During] = nothing_else,
    suites: Sequence[SuiteScenario] = (),
    criteria: Sequence[str],
) -> Experiment:
    """An experiment on twice as many brokers as a partition has replicas; its steps are watched in every mode."""
    defaults = {"partitions": str(PARTITIONS), "reassignment-batch-size": "5"}
    common = parameters(
        inbound(written),
        Parameter("min-insync", "2", whole(1, factor), "min.insync.replicas of the moving partitions"),
        *more,
        rate=rate,
        fetch=fetch,
        preload=preload,
    )
    return scenario(
        name,
        summary,
        brokers=2 * factor,
        parameters=[replace(each, default=defaults.get(each.name, each.default)) for each in common],
        stage=stage,
        during=during,
        profiles=profiles,
        make=Watched,
        suites=suites,
        criteria=criteria,
    )
