"""When a series ends before its last slot: no time left, or known well enough. Pure."""

import math
import re
from collections.abc import Mapping, Sequence

from results.compare import Finding, Rule
from testbed.errors import UsageError
from testbed.runner.schedule import Slot
from testbed.runner.series import Series, SoFar
from testbed.units import UnitError, parse_duration

NIGHTLY = "nightly"
"""The door whose variants are scenarios, each compared with its own past."""
QUALIFY = "qualify"
"""The door whose groups are scenarios, each run with every version."""
TOLD_UNFINISHED = (NIGHTLY, QUALIFY)
"""Where several runs in a row could not be made, what was made is told all the same, and what was not, and why."""
ENOUGH_PAIRS = 8
"""An interval is not asked whether it is narrow enough before: with fewer pairs it may be so by luck."""


def parse_budget(text: str | None) -> float | None:
    """Seconds of `30m`, `2h`, `90s`, …; a bare `m` is minutes here. None is none; empty text is not: it is a variable
    that somebody forgot to set. Raises `UsageError`."""
    if text is None:
        return None
    try:
        seconds = parse_duration(re.sub(r"(?<=[0-9])m$", "min", text.strip()))
    except UnitError as error:
        raise UsageError(f"--budget {text}: {error}") from error
    if seconds <= 0:
        raise UsageError(f"--budget {text}: there must be some time, for instance 30m")
    return seconds


def durations(series: Series, state: SoFar) -> Mapping[str, float]:
    """Variant → how long its longest slot took so far, canary included."""
    labels = {slot.index: slot.variant for slot in series.slots}
    found: dict[str, float] = {}
    for index, ran in state.ran.items():
        found[labels[index]] = max(found.get(labels[index], 0.0), ran.done.seconds)
    for failure in state.failures:
        found[labels[failure.slot]] = max(found.get(labels[failure.slot], 0.0), failure.seconds)
    return found


def needed_s(slots: Sequence[Slot], seen: Mapping[str, float]) -> float:
    """How long these slots will take: as long as each variant's longest; one not seen yet as the longest of all."""
    unseen = max(seen.values(), default=0.0)
    return sum(seen.get(slot.variant, unseen) for slot in slots)


def out_of_time(slot: Slot, series: Series, state: SoFar, left_s: float) -> str | None:
    """Why `slot` is not begun: what is open of its block would not be done in `left_s`; None when it would.

    A pair that is not finished says nothing, so a block is begun only when all of it fits. The runs of a night are
    not compared with each other: there it is the slot alone.
    """
    rest = [each for each in series.slots if each.block == slot.block and each.index not in state.ran]
    if series.door == NIGHTLY:
        rest = [slot]
    needed = needed_s(rest, durations(series, state))
    if left_s > 0 and needed <= left_s:
        return None
    return f"the time budget: {max(left_s, 0):.0f} s are left, {len(rest)} slots of a block take about {needed:.0f} s"


def narrow_enough(findings: Sequence[Finding], threshold: float) -> str | None:
    """Why no more pairs are needed: every interval is at most its measure's threshold wide, after `ENOUGH_PAIRS` pairs.

    Only widths are looked at, never on which side of anything an interval lies: stopping says nothing of the effect.
    """
    if not findings:
        return None
    widest = 0.0
    for finding in findings:
        effect, limit = finding.effect, finding.comparison.measure.limit(threshold)
        if effect is None or effect.pairs < ENOUGH_PAIRS or effect.half_width > limit / 2:
            return None
        widest = max(widest, effect.half_width)
    return f"known well enough: the widest interval is ± {widest * 100:.2g} %"


def fewest_pairs_to_tell(comparisons: int, rule: Rule | None = None) -> int:
    """How many pairs are needed so that the clearest possible regression is beyond luck among so many comparisons."""
    rule = rule or Rule()
    # When all n pairs agree, luck has a chance of 2⁻ⁿ.
    return max(rule.fewest_pairs, math.ceil(math.log2(max(comparisons, 1) / rule.family)))
