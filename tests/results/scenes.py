"""KIP-73's scenes, small enough to be simulated in a moment."""

from dataclasses import replace
from typing import Any

from tests.results.flowing import Group, Scene

AB, ABC = ("b1", "b2"), ("b1", "b2", "b3")


def two_node(inbound: float = 0.0, size: float = 560e6, **changes: Any) -> Scene:
    """(b1) → (b2)."""
    group = Group("kip73", 6, "b1", (), ("b2",), size, inbound)
    name = "kip73-two-node-produce" if inbound else "kip73-two-node"
    return replace(Scene(name, AB, (group,)), **changes)


def one_to_two(inbound: float = 0.0, **changes: Any) -> Scene:
    """(b1, b2) → (b3, b2) and (b1, b3) → (b2, b3), led by b1."""
    groups = (
        Group("first", 4, "b1", ("b2",), ("b3",), 280e6 - 28 * inbound, inbound / 2),
        Group("second", 4, "b1", ("b3",), ("b2",), 280e6 - 28 * inbound, inbound / 2),
    )
    name = "kip73-one-to-two-produce" if inbound else "kip73-one-to-two"
    return replace(Scene(name, ABC, groups), **changes)


def two_to_one(inbound: float = 0.0, **changes: Any) -> Scene:
    """(b1, b2) → (b3, b2) led by b1 and (b2, b1) → (b3, b1) led by b2."""
    groups = (
        Group("first", 4, "b1", ("b2",), ("b3",), 280e6 - 28 * inbound, inbound / 2),
        Group("second", 4, "b2", ("b1",), ("b3",), 280e6 - 28 * inbound, inbound / 2),
    )
    name = "kip73-two-to-one-produce" if inbound else "kip73-two-to-one"
    return replace(Scene(name, ABC, groups), **changes)


def live_change(**changes: Any) -> Scene:
    """8, then 12, then 4 MB/s."""
    group = Group("kip73", 6, "b1", (), ("b2",), 26 * 24e6)
    quotas = ((0.0, 8e6), (26.0, 12e6), (52.0, 4e6))
    return replace(Scene("kip73-live-change", AB, (group,), quotas), **changes)


def bounce(**changes: Any) -> Scene:
    """(b1, b2) → (b3, b2), led by b1, while b3, then b1 and then b2 are restarted."""
    group = Group("kip73", 6, "b1", ("b2",), ("b3",), 640e6, 0.5e6)
    restarts = (("b3", 14.0, 20.0, True), ("b1", 36.0, 42.0, False), ("b2", 56.0, 59.0, False))
    return replace(Scene("kip73-bounce", ABC, (group,), restarts=restarts), **changes)


def stuck(**changes: Any) -> Scene:
    """2 MB/s under 3 MB/s of inbound; raised to 10 MB/s."""
    group = Group("kip73", 6, "b1", (), ("b2",), 240e6, 3e6)
    return replace(Scene("kip73-stuck", AB, (group,), ((0.0, 2e6), (18.0, 10e6)), stuck=(17.0, 15.0)), **changes)


def mixed(**changes: Any) -> Scene:
    """High-volume partitions move, low-volume ones have both in sync; all listed."""
    groups = (
        Group("high", 6, "b1", (), ("b2",), 470e6, 1e6),
        Group("low", 4, "b1", ("b2",), (), 4e6, 0.2e6, leader_leaves=False),
    )
    return replace(Scene("kip73-mixed-volume", AB, groups, wildcard=True), **changes)
