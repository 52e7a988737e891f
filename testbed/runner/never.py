"""What is not worth trying any more: a variant that never ran, and the runs that would have stood beside it. Pure."""

from collections.abc import Callable

from results.compare.qualification import CERTAIN
from testbed.runner.schedule import Slot
from testbed.runner.series import Series, SoFar


def never_made(series: Series, state: SoFar, slot: Slot, kind_of: Callable[[str], str] = str) -> bool:
    """Whether nobody needs a slot's run: its variant could not be run wherever it was tried, and that often enough, or
    it is a baseline of such variants only. `kind_of` a label: what it shares with others that fail as it does.

    What was tried is tried again by `--resume`; where that helps, the rest is needed again.
    """
    if slot.index in _tried(state):
        return False

    def dead(label: str) -> bool:
        return _dead(state, {each.index for each in series.slots if kind_of(each.variant) == kind_of(label)})

    part, _first = series.part_of(slot)
    held_against = [candidate for baseline, candidate in part.pairs if baseline == slot.variant]
    return dead(slot.variant) or (bool(held_against) and all(map(dead, held_against)))


def without_baseline(series: Series, state: SoFar, slot: Slot) -> bool:
    """Whether none of a candidate's baselines ever ran, and that was tried often enough."""
    part, _first = series.part_of(slot)
    baselines = {baseline for baseline, candidate in part.pairs if candidate == slot.variant}
    of_them = {each.index for each in series.slots if each.variant in baselines}
    return slot.index not in _tried(state) and _dead(state, of_them)


def nothing_to_compare(series: Series) -> Callable[[Slot, SoFar], bool]:
    """`never_made` of variants that have nothing in common; without its baseline a variant's run is needless, too."""
    return lambda slot, state: never_made(series, state, slot) or without_baseline(series, state, slot)


def _tried(state: SoFar) -> set[int]:
    return {failure.slot for failure in state.failures}


def _dead(state: SoFar, slots: set[int]) -> bool:
    return len(slots & _tried(state)) >= CERTAIN and not slots & state.ran.keys()
