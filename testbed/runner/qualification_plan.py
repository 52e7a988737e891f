"""The variants and groups of a qualification: versions × scenarios, with a group for each scenario.

A *once* scenario is a case of a suite, run with each version. A *paired* scenario is run as by `testbed compare`.
An *upgrade* begins with a baseline and ends with the candidate while data moves; its counterpart merely restarts the
same brokers. A *downgrade* is the way back.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from results.compare.qualification import CERTAIN, Kind
from testbed.errors import UsageError
from testbed.experiments.mid_move_actions import SAME
from testbed.runner.campaign import Campaign, VariantGroup
from testbed.runner.qualification_scope import PAIRS, SUITES, QualificationScope
from testbed.runner.variant import TARGET, UPGRADE, Variant, called, of_case
from testbed.software.source import parse_source
from testbed.suggestions import did_you_mean
from testbed.suites.suite import Case, find_suite
from testbed.topology.find import find

UPGRADE_FROM, DOWNGRADE_TO = "upgrade from ", "downgrade to "
"""How the names of these scenarios begin; the baseline's version follows."""
PAIRED = ("kip73-two-node", "kip73-one-to-two-produce", "kip73-two-to-one-produce")
"""Experiments whose first case is run in pairs: a move alone, one that a leader limits, one that a follower limits.

The last two run under load.
"""


def names(candidate: str, baselines: Sequence[str]) -> dict[str, str]:
    """Return the name of each Kafka, the baselines first: a version unchanged, a tarball or folder by its last part.

    Raise `UsageError` for a text that is no Kafka, and for two of the same name.
    """
    if not baselines:
        raise UsageError("--against is missing: name at least one release that the candidate is held against")
    found: dict[str, str] = {}
    for text in (*baselines, candidate):
        name = called(text)
        if name in found.values():
            other = next(each for each in (*baselines, candidate) if called(each) == name)
            raise UsageError(
                f"{other} and {text} are both called {name}: a release is not held against itself; "
                "give another build's file or folder a name of its own"
            )
        found[text] = name
    return found


def label(scenario: str, version: str) -> str:
    """Return the label of the variant that runs a scenario with a version."""
    return f"{scenario}, {version}"


def version_of(variant: str) -> str:
    """Return the version in a label that `label` made."""
    return variant.rpartition(", ")[2]


def plan(
    candidate: str, baselines: Sequence[str], scope: QualificationScope
) -> tuple[list[Variant], list[VariantGroup]]:
    """Return every variant, and the group of each scenario, in the order once, upgrade, paired.

    A short budget thus costs pairs first. In each group the candidate is last. Raise
    `UsageError` when a scenario cannot be run.
    """
    known = names(candidate, baselines)
    upgrades = upgrades_from(known[each] for each in baselines) if scope.upgrades else {}
    cases = _cases(scope, upgrades)
    paired = _paired(cases, scope)
    variants: list[Variant] = []
    groups: list[VariantGroup] = []

    def add(name: str, members: Sequence[Variant], repeats: int, compared: bool) -> None:
        variants.extend(members)
        groups.append(VariantGroup.of(name, members, repeats, compared=compared))

    def each_version(name: str, case: Case) -> list[Variant]:
        return [
            replace(of_case(case, scope.profile, text), label=label(name, version)) for text, version in known.items()
        ]

    for name, case in cases.items():
        if name not in paired:
            add(name, each_version(name, case), CERTAIN, compared=False)
    texts = {version: text for text, version in known.items()}
    named = set(scope.only) & upgrades.keys()
    for name, (baseline, settings) in upgrades.items():
        if named and name not in named:
            continue
        target = f"{TARGET}{parse_source(candidate)}"
        members = [
            Variant(label(name, baseline), UPGRADE, scope.profile, (f"{TARGET}{SAME}",), texts[baseline]),
            Variant(label(name, known[candidate]), UPGRADE, scope.profile, (target, *settings), texts[baseline]),
        ]
        add(name, members, CERTAIN, compared=False)
    for name in paired:
        add(name, each_version(name, cases[name]), PAIRS if scope.pairs is None else scope.pairs, compared=True)
    return variants, groups


def upgrades_from(baselines: Iterable[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return each scenario that changes the release: its baseline's name, and its settings besides the target."""
    ways = ((UPGRADE_FROM, ()), (DOWNGRADE_TO, ("direction=down",)))
    return {f"{way}{baseline}": (baseline, settings) for baseline in baselines for way, settings in ways}


def _cases(scope: QualificationScope, upgrades: Iterable[str]) -> dict[str, Case]:
    every = {
        f"{suite}/{case.name}": case
        for suite in scope.suites
        for case in find_suite(suite).cases(scope.profile)
        if case.topology is None or find(case.topology).automq is None  # AutoMQ is no release of Kafka
    }
    known = [*every, *upgrades]
    for name in scope.only:
        if name not in known:
            raise UsageError(f"--scenario {name}: there are {', '.join(known)}{did_you_mean(name, known)}")
    return {name: case for name, case in every.items() if not scope.only or name in scope.only}


def _paired(cases: Mapping[str, Case], scope: QualificationScope) -> list[str]:
    if scope.paired is not None:
        for name in scope.paired:
            if name not in cases:
                raise UsageError(f"--paired {name}: there are {', '.join(cases)}{did_you_mean(name, cases)}")
        return list(dict.fromkeys(scope.paired))
    first = {case.experiment: name for name, case in reversed(list(cases.items()))}
    return [first[experiment] for experiment in PAIRED if experiment in first]


def kind_of(group: VariantGroup) -> Kind:
    """Return how a group's scenario is run."""
    if group.pairs:
        return "paired"
    return "upgrade" if group.name.startswith((UPGRADE_FROM, DOWNGRADE_TO)) else "once"


def versions(campaign: Campaign) -> tuple[str, tuple[str, ...]]:
    """Return the name of the candidate, and the names of the baselines."""
    candidate = version_of(campaign.variant_groups[0].labels[-1])
    every = dict.fromkeys(version_of(each) for group in campaign.variant_groups for each in group.labels)
    return candidate, tuple(each for each in every if each != candidate)


def command(campaign: Campaign) -> str:
    """Return the command line that starts the same runs."""
    groups = campaign.variant_groups
    # An upgrade's variant begins with the baseline, whatever it ends with.
    texts = {version_of(each): campaign.variant(each).kafkas[-1] for group in groups for each in group.labels}
    candidate, baselines = versions(campaign)
    words = ["testbed", "qualify", "--kafka", texts[candidate], "--against", *(texts[each] for each in baselines)]
    cases = [group.name for group in groups if kind_of(group) != "upgrade"]
    upgrades = [group.name for group in groups if kind_of(group) == "upgrade"]
    suites = list(dict.fromkeys(name.partition("/")[0] for name in cases))
    words += [word for suite in suites for word in ("--suite", suite) if not set(suites) <= set(SUITES)]
    every = set(upgrades) == upgrades_from(baselines).keys()
    words += [word for name in (*cases, *(() if cases and every else upgrades)) for word in ("--scenario", name)]
    paired = [group for group in groups if group.pairs]
    words += [word for group in paired for word in ("--paired", group.name)]
    words += ["--pairs", str(paired[0].repeats)] if paired else ["--no-pairs"]
    words += [] if upgrades else ["--no-upgrade"]
    words += [word for name in campaign.measures for word in ("--measure", name)]
    words += ["--threshold", f"{campaign.threshold * 100:g}"]
    words += ["--profile", campaign.variants[0].profile, "--seed", str(campaign.seed)]
    return shlex.join(words)
