"""What a series says: from its journal to findings. Pure."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from results.compare import Comparison, Finding, Pair, Rule, Verdict, find_measure, judge, moved, worst
from results.verdict import Verdict as RunVerdict
from testbed.runner.series import Canary, Ran, Series, SoFar

ALONE = 1
"""In so many runs a criterion may fail for the candidate alone before that is called a regression."""


@dataclass(frozen=True, slots=True)
class Row:
    """One variant: its runs' verdicts, and the median of each measure over the runs that could be judged."""

    variant: str
    runs: Mapping[RunVerdict, int]
    medians: Mapping[str, float]
    ids: tuple[str, ...]
    """Of all its runs, in order."""
    not_passed: tuple[str, ...]
    """For each run that did not pass: its id, its verdict and the criteria that failed, in words."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A criterion that fails in runs of the candidate, and in none of the baseline."""

    candidate: str
    criterion: str
    runs: int
    of: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a series says so far."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    broken: tuple[Broken, ...]

    @property
    def verdict(self) -> Verdict:
        """Of all candidates together against the baseline."""
        return "REGRESSED" if self.broken else worst(self.findings)

    def verdict_of(self, candidate: str) -> Verdict:
        """Of one candidate against the baseline."""
        if any(each.candidate == candidate for each in self.broken):
            return "REGRESSED"
        return worst([finding for finding in self.findings if finding.comparison.candidate == candidate])


def outcome(series: Series, state: SoFar) -> Outcome:
    """Everything the journal says; may be asked at any time."""
    return Outcome(_rows(series, state), findings(series, state), _broken(series, state))


def findings(series: Series, state: SoFar) -> tuple[Finding, ...]:
    """Each candidate against the first variant in each measure, all judged as one family."""
    baseline, *candidates = (variant.label for variant in series.variants)
    runs = by_block(series, state)
    comparisons = [
        Comparison(baseline, candidate, find_measure(name), pairs(runs, baseline, candidate, name, state.canaries))
        for candidate in candidates
        for name in series.measures
    ]
    return judge(comparisons, Rule(threshold=series.threshold))


def by_block(series: Series, state: SoFar) -> tuple[Mapping[str, Ran], ...]:
    """For each block its runs by variant, those that are made."""
    blocks: list[dict[str, Ran]] = [{} for _ in range(series.repeats)]
    for slot in series.slots:
        if slot.index in state.ran:
            blocks[slot.block][slot.variant] = state.ran[slot.index]
    return tuple(blocks)


def pairs(
    blocks: Sequence[Mapping[str, Ran]], baseline: str, candidate: str, measure: str, canaries: Sequence[Canary]
) -> tuple[Pair, ...]:
    """The runs of two variants, block by block, in one measure; blocks in which one of them was not made have none.

    A run that is inconclusive was made on ground that was not as declared: its values are not used.
    """
    readings = [canary.reading for canary in canaries]
    found = []
    for runs in blocks:
        if baseline not in runs or candidate not in runs:
            continue
        first, second = runs[baseline], runs[candidate]
        changes = [str(each) for each in moved([c.reading for c in _around(first, second)], readings)]
        changes += _differences(first, second)
        found.append(Pair(_value(first, measure), _value(second, measure), "; ".join(changes)))
    return tuple(found)


def _value(ran: Ran, measure: str) -> float | None:
    return None if ran.done.verdict == "inconclusive" else ran.done.values.get(measure)


def _around(*runs: Ran) -> list[Canary]:
    return [canary for ran in runs for canary in (*ran.before, *ran.after)]


def _differences(first: Ran, second: Ran) -> list[str]:
    """What beside the canaries' readings sets two runs apart that should differ in their variant alone."""
    found = []
    classes = sorted({canary.environment for canary in _around(first, second)})
    if len(classes) > 1:
        found.append(f"environment {' and '.join(classes)}")
    if not all((first.before, first.after, second.before, second.after)):
        found.append("no look at the machine before and after each run")
    return found


def _rows(series: Series, state: SoFar) -> tuple[Row, ...]:
    rows = []
    for variant in series.variants:
        runs = [state.ran[s.index] for s in series.slots if s.variant == variant.label and s.index in state.ran]
        verdicts = Counter(ran.done.verdict for ran in runs)
        medians = {}
        for name in series.measures:
            values = [value for ran in runs if (value := _value(ran, name)) is not None]
            if values:
                medians[name] = statistics.median(values)
        ids = tuple(ran.done.run_id for ran in runs)
        rows.append(Row(variant.label, dict(verdicts), medians, ids, tuple(_in_words(r) for r in runs if _bad(r))))
    return tuple(rows)


def _bad(ran: Ran) -> bool:
    return ran.done.verdict != "pass"


def _in_words(ran: Ran) -> str:
    failed = f": {', '.join(ran.done.failed)}" if ran.done.failed else ""
    return f"{ran.done.run_id} {ran.done.verdict}{failed}"


def _broken(series: Series, state: SoFar) -> tuple[Broken, ...]:
    """Criteria that fail for a candidate in more than `ALONE` runs, and never for the baseline."""
    baseline, *candidates = (variant.label for variant in series.variants)
    blocks = by_block(series, state)
    known = {name for runs in blocks if baseline in runs for name in runs[baseline].done.failed}
    if not any(baseline in runs for runs in blocks):
        return ()
    found = []
    for candidate in candidates:
        mine = [runs[candidate].done for runs in blocks if candidate in runs]
        counts = Counter(name for done in mine for name in done.failed if name not in known)
        found += [Broken(candidate, name, count, len(mine)) for name, count in sorted(counts.items()) if count > ALONE]
    return tuple(found)


def mixed_software(series: Series, state: SoFar) -> list[str]:
    """Variants whose runs did not all have the same Kafka, byte for byte: a folder was built anew between them."""
    found = []
    for variant in series.variants:
        slots = [slot for slot in series.slots if slot.variant == variant.label and slot.index in state.ran]
        if len({state.ran[slot.index].done.software for slot in slots}) > 1:
            found.append(variant.label)
    return found
