"""The controller's rules of a partition's state, which hold whatever happens to brokers. Pure."""

from typing import Protocol


class PlacedState(Protocol):
    """A partition's state as the controller's log has it, or as an answer describes it."""

    @property
    def replicas(self) -> tuple[int, ...]:
        """Return the brokers that have a replica."""

    @property
    def adding(self) -> tuple[int, ...]:
        """Return the replicas that a reassignment adds."""

    @property
    def removing(self) -> tuple[int, ...]:
        """Return the replicas that a reassignment removes."""

    @property
    def isr(self) -> tuple[int, ...]:
        """Return the replicas in sync."""

    @property
    def leader(self) -> int | None:
        """Return the leader; None without one."""


def unsound(state: PlacedState) -> str:
    """Return which rule of the controller a state breaks, in words; empty for a sound one."""
    replicas = {*state.replicas}
    if len(replicas) < len(state.replicas) or len({*state.isr}) < len(state.isr):
        return f"has a broker twice: replicas {list(state.replicas)}, in sync {list(state.isr)}"
    if strangers := {*state.isr, *state.adding, *state.removing} - replicas:
        return f"has {sorted(strangers)} in sync, adding or removing, and the replicas {list(state.replicas)}"
    if state.leader is not None and state.leader not in state.isr:
        return f"is led by {state.leader}, which is not in sync: replicas {list(state.replicas)}, {list(state.isr)}"
    return ""
