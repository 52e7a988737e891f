"""The controller's rules of a partition's state, which hold whatever happens to brokers. Pure."""

from results.contract.steps import State


def unsound(state: State) -> str:
    """Return which rule of the controller a state breaks, in words; empty for a sound one."""
    replicas = {*state.replicas}
    if len(replicas) < len(state.replicas) or len({*state.isr}) < len(state.isr):
        return f"has a broker twice: replicas {list(state.replicas)}, in sync {list(state.isr)}"
    if strangers := {*state.isr, *state.adding, *state.removing} - replicas:
        return f"has {sorted(strangers)} in sync, adding or removing, and the replicas {list(state.replicas)}"
    if state.leader is not None and state.leader not in state.isr:
        return f"is led by {state.leader}, which is not in sync: replicas {list(state.replicas)}, {list(state.isr)}"
    return ""
