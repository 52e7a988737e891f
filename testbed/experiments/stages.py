"""The scenes of KIP-73's test plan, from an experiment's settings and the brokers' hosts. Pure."""

from testbed.experiments.kip73 import Hosts, Settings, halves, lasting, number, scene
from testbed.experiments.scene import Group, Scene


def _written(settings: Settings) -> float:
    """Inbound of all moving partitions, B/s; 0 for a scenario without."""
    return number(settings, "inbound") if "inbound" in settings else 0.0


def _lasting(settings: Settings, found: Scene) -> Scene:
    return lasting(found, number(settings, "rate"), number(settings, "preload"))


def two_node(settings: Settings, hosts: Hosts) -> Scene:
    """(A) → (B), or with ``add=yes`` (A) → (A, B)."""
    a, b = hosts
    target = (a, b) if settings.get("add") == "yes" else (b,)
    partitions = range(int(number(settings, "partitions")))
    return _lasting(settings, scene([Group("kip73", partitions, (a,), target, 1, _written(settings))], a, b))


def one_to_two(settings: Settings, hosts: Hosts) -> Scene:
    """All led by A: half of them (A, B) → (C, B), half (A, C) → (B, C). A's replicas go to the other two."""
    a, b, c = hosts
    first, second = halves(int(number(settings, "partitions")))
    each = _written(settings) / 2
    groups = [Group("kip73", first, (a, b), (c, b), 1, each), Group("kip73", second, (a, c), (b, c), 1, each)]
    return _lasting(settings, scene(groups, a, c))


def two_to_one(settings: Settings, hosts: Hosts) -> Scene:
    """(A, B) → (C, B) led by A, and (B, A) → (C, A) led by B: what C receives binds, not what A and B send."""
    a, b, c = hosts
    first, second = halves(int(number(settings, "partitions")))
    each = _written(settings) / 2
    groups = [Group("kip73", first, (a, b), (c, b), 1, each), Group("kip73", second, (b, a), (c, a), 1, each)]
    return _lasting(settings, scene(groups, a, c))


def one_of_two(settings: Settings, hosts: Hosts) -> Scene:
    """(A, B) → (C, B), all led by A: another broker always has everything."""
    a, b, c = hosts
    partitions = range(int(number(settings, "partitions")))
    return _lasting(settings, scene([Group("kip73", partitions, (a, b), (c, b), 1, _written(settings))], a, c))
