"""What a qualification runs: versions × scenarios, as one series with a group for each scenario.

A scenario that is run *once* is a case of a suite, with each version; where the candidate fails or cannot be judged it
is run again, up to three times. One in *pairs* is as `testbed compare` runs it. An *upgrade* begins with a baseline and
ends with the candidate while data moves; beside it the same brokers are merely restarted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from results.compare.qualification import CERTAIN, Cell, Kind, doubtful
from testbed.errors import UsageError
from testbed.runner.limits import narrow_enough
from testbed.runner.never import never_made, without_baseline
from testbed.runner.outcome import by_block, findings
from testbed.runner.schedule import Slot
from testbed.runner.series import Group, Ran, Series, SoFar
from testbed.runner.variant import UPGRADE, Variant, called
from testbed.software.source import parse_source
from testbed.suggestions import did_you_mean
from testbed.suites.suite import Case, find_suite

SUITES = ("kip73", "kip435", "kip455")
PAIRED = ("kip73-two-node", "kip73-one-to-two-produce", "kip73-two-to-one-produce")
"""Experiments of which the first case is run in pairs: a move alone, one that a leader binds, one that a follower does;
the last two under load."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which scenarios. `only` and `paired` name them as `SUITE/CASE`; `paired` None: the usual ones."""

    profile: str = "ci"
    suites: tuple[str, ...] = SUITES
    only: tuple[str, ...] = ()
    paired: tuple[str, ...] | None = None
    pairs: int = 10
    upgrades: bool = True


def names(candidate: str, baselines: Sequence[str]) -> dict[str, str]:
    """What each Kafka is called, the baselines first: a version as it is, a tarball or folder by its last part.

    Raises `UsageError` for what is no Kafka, and for two of one name.
    """
    if not baselines:
        raise UsageError("--against is missing: name at least one release that the candidate is held against")
    found: dict[str, str] = {}
    for text in (*baselines, candidate):
        name = called(text)
        if name in found.values():
            raise UsageError(f"two of them are called {name}: {text} and another; a release is not held against itself")
        found[text] = name
    return found


def label(scenario: str, version: str) -> str:
    """The label of the variant that runs a scenario with a version."""
    return f"{scenario}, {version}"


def version_of(variant: str) -> str:
    """The inverse of `label`."""
    return variant.rpartition(", ")[2]


def plan(candidate: str, baselines: Sequence[str], scope: Scope) -> tuple[list[Variant], list[Group]]:
    """Every variant, and the group of each scenario: once, upgrades, then pairs, so that a short budget costs
    precision before it costs scenarios. In each group the candidate is last. Raises `UsageError`.
    """
    known = names(candidate, baselines)
    cases = _cases(scope)
    paired = _paired(cases, scope)
    variants: list[Variant] = []
    groups: list[Group] = []

    def add(name: str, members: Sequence[Variant], repeats: int, compared: bool) -> None:
        labels = tuple(each.label for each in members)
        pairs = tuple((each, labels[-1]) for each in labels[:-1]) if compared else ()
        variants.extend(members)
        groups.append(Group(name, labels, repeats, pairs))

    def each_version(name: str, case: Case) -> list[Variant]:
        return [
            Variant(label(name, version), case.experiment, scope.profile, case.settings, text, case.topology)
            for text, version in known.items()
        ]

    for name, case in cases.items():
        if name not in paired:
            add(name, each_version(name, case), CERTAIN, compared=False)
    for text in baselines if scope.upgrades else ():
        name, target = f"upgrade from {known[text]}", str(parse_source(candidate))
        members = [
            Variant(label(name, known[text]), UPGRADE, scope.profile, ("to=same",), text),
            Variant(label(name, known[candidate]), UPGRADE, scope.profile, (f"to={target}",), text),
        ]
        add(name, members, CERTAIN, compared=False)
    for name in paired:
        add(name, each_version(name, cases[name]), scope.pairs, compared=True)
    return variants, groups


def _cases(scope: Scope) -> dict[str, Case]:
    every = {f"{suite}/{case.name}": case for suite in scope.suites for case in find_suite(suite).cases(scope.profile)}
    for name in scope.only:
        if name not in every:
            raise UsageError(f"--scenario {name}: there are {', '.join(every)}{did_you_mean(name, every)}")
    return {name: case for name, case in every.items() if not scope.only or name in scope.only}


def _paired(cases: Mapping[str, Case], scope: Scope) -> list[str]:
    if scope.paired is not None:
        for name in scope.paired:
            if name not in cases:
                raise UsageError(f"--paired {name}: there are {', '.join(cases)}{did_you_mean(name, cases)}")
        return list(dict.fromkeys(scope.paired))
    first = {case.experiment: name for name, case in reversed(list(cases.items()))}
    return [first[experiment] for experiment in PAIRED if experiment in first]


def kind_of(part: Group) -> Kind:
    """How a group's scenario is run."""
    if part.pairs:
        return "paired"
    return "upgrade" if part.name.startswith("upgrade from ") else "once"


def cells_of(series: Series, state: SoFar, part: Group, first: int, blocks: Sequence[Mapping[str, Ran]]) -> list[Cell]:
    """What each version did in a scenario so far; `first` is the group's first block, `blocks` are the series'."""
    return [
        cell(each, [runs[each] for runs in blocks[first : first + part.repeats] if each in runs], _why(series, state))
        for each in part.labels
    ]


def cell(variant: str, ran: Sequence[Ran], why: Mapping[str, str]) -> Cell:
    """The runs of one variant. A run that could not be judged says nothing of any criterion."""
    verdicts = [each.done.verdict for each in ran]
    counts: dict[str, tuple[int, int]] = {}
    for each in ran:
        if each.done.verdict == "inconclusive":
            continue
        for name in (*each.done.failed, *each.done.kept):
            bad, of = counts.get(name, (0, 0))
            counts[name] = (bad + (name in each.done.failed), of + 1)
    return Cell(
        version_of(variant),
        {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        tuple(each.done.run_id for each in ran),
        counts,
        "" if ran else why.get(variant, ""),
    )


def _why(series: Series, state: SoFar) -> dict[str, str]:
    """Variant → why its last run could not be made."""
    labels = {slot.index: slot.variant for slot in series.slots}
    return {labels[failure.slot]: f"it could not be run: {failure.why}" for failure in state.failures}


def spare(all_pairs: bool) -> Callable[[Series], Callable[[Slot, SoFar], bool]]:
    """Which slots nobody needs: the second and third run of what the first one told, and, unless `all_pairs`, pairs
    beyond those that make every interval of their scenario narrow enough; and a version that never starts."""

    def of(series: Series) -> Callable[[Slot, SoFar], bool]:
        def not_needed(slot: Slot, state: SoFar) -> bool:
            if never_made(series, state, slot, version_of):
                return True
            part, first = series.part_of(slot)
            blocks = by_block(series, state)
            if part.pairs:
                # Without its baselines a candidate's runs are those of a scenario that is run once.
                mine = [runs for runs in blocks if slot.variant in runs]
                if len(mine) >= CERTAIN and without_baseline(series, state, slot):
                    return True
                return not all_pairs and not blocks[slot.block] and _known(series, state, part)
            if slot.block == first:
                return False
            cells = cells_of(series, state, part, first, blocks)
            candidate = cells[-1]
            if not candidate.ids:
                return True  # the first run could not be made: that is tried again, not the others
            if slot.variant == part.labels[-1]:
                return not doubtful(candidate)
            return not candidate.runs.get("fail")

        return not_needed

    return of


def _known(series: Series, state: SoFar, part: Group) -> bool:
    mine = [
        each for each in findings(series, state) if (each.comparison.baseline, each.comparison.candidate) in part.pairs
    ]
    return narrow_enough(mine, series.threshold) is not None
