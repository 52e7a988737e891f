"""The variants and groups of a qualification: versions × scenarios, with a group for each scenario.

A *once* scenario is a case of a suite, run with each version. A *paired* scenario is run as by `testbed compare`.
An *upgrade* begins with a baseline and ends with the candidate while data moves; a *downgrade* is the way back. Both
are held against the same restarts of the baseline's brokers.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from results.compare.qualification import Kind
from results.compare.scenario_judgement import CERTAIN
from testbed.errors import UsageError
from testbed.experiments.mid_move_actions import SAME
from testbed.provision.upgrade import cannot_join
from testbed.runner.campaign import Campaign, VariantGroup
from testbed.runner.qualification_scope import PAIRS, SPARES, SUITES, QualificationScope
from testbed.runner.variant import TARGET, UPGRADE, Variant, of_case
from testbed.software.format import levels_of
from testbed.software.kafka import kafka_release
from testbed.software.source import KafkaSource, parse_source
from testbed.suggestions import did_you_mean
from testbed.suites.suite import Case, find_suite
from testbed.topology.find import find

WAYS: Mapping[str, tuple[str, ...]] = {"upgrade from ": (), "downgrade to ": ("direction=down",)}
"""How the names of the scenarios that change the release begin, and their settings besides the target.

The baseline's version follows in the name.
"""
RESTARTS = "restarts of "
"""How the name of their counterpart begins."""
PAIRED = ("kip73-two-node", "kip73-one-to-two-produce", "kip73-two-to-one-produce")
"""Experiments whose first case is run in pairs: a move alone, one that a leader limits, one that a follower limits.

The last two run under load.
"""
UNTHROTTLED = "s3/unthrottled"
"""The scenario that is run in pairs as well. A throttle makes up for what copying costs: without one it shows."""


def named(candidate: str, baselines: Sequence[str]) -> tuple[KafkaSource, ...]:
    """Return the Kafka of each baseline, then the candidate. Raise `UsageError` for a text that names none."""
    if not baselines:
        raise UsageError("--against is missing: name at least one release to compare the candidate with")
    return tuple(parse_source(text) for text in (*baselines, candidate))


def require_known(baselines: Sequence[KafkaSource], scope: QualificationScope) -> None:
    """Raise `UsageError` for a suite, a profile or a scenario that does not exist, and fetch and copy nothing for it.

    The version of a tarball or folder is not known yet. A scenario's name may then contain any version.
    """
    upgrades = [name for each in baselines for name in upgrades_of(each.text)]
    if not all(each.is_permanent for each in baselines):
        upgrades += [name for name in scope.only if name.startswith(tuple(WAYS))]
    _paired(_cases(scope, upgrades if scope.upgrades else ()), scope)


def permanent(candidate: str, baselines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the permanent version of the candidate and of each baseline. Each is in the cache then.

    A tarball or folder is copied: all runs have this build, although it may be built again meanwhile. Raise
    `UsageError` as `named` does and for one Kafka twice, and `SoftwareError` for one that is not available.
    """
    found: dict[str, KafkaSource] = {}
    for source in named(candidate, baselines):
        version = kafka_release(source).version
        if version in found:
            raise UsageError(f"{found[version]} and {source} are both {version}: name another release")
        found[version] = source
    *before, new = found
    return new, tuple(before)


def require_upgrades(candidate: str, groups: Sequence[VariantGroup]) -> None:
    """Raise `UsageError` when a cluster of a baseline that is upgraded has features that the candidate lacks.

    The versions are those of `permanent`. Raise `SoftwareError` when a release's own tool does not give its features.
    """
    for baseline in (version_of(group.labels[0]) for group in groups if kind_of(group) == "upgrade"):
        finalized, known = (levels_of(kafka_release(parse_source(each))) for each in (baseline, candidate))
        if wrong := cannot_join(finalized, known):
            raise UsageError(f"{candidate} is no upgrade of {baseline}: {wrong}; add --no-upgrade")


def label(scenario: str, version: str) -> str:
    """Return the label of the variant that runs a scenario with a version."""
    return f"{scenario}, {version}"


def version_of(variant: str) -> str:
    """Return the version in a label that `label` made."""
    return variant.rpartition(", ")[2]


def scenario_of(variant: str) -> str:
    """Return the scenario in a label that `label` made."""
    return variant.rpartition(", ")[0]


def plan(
    candidate: str, baselines: Sequence[str], scope: QualificationScope
) -> tuple[list[Variant], list[VariantGroup]]:
    """Return every variant, and the groups in the order once, upgrades, paired, from the versions of `permanent`.

    A short budget thus costs pairs first. Each scenario is a group. The upgrade and the downgrade of a baseline are one
    group, with the restarts that both are held against. Raise `UsageError` when a scenario cannot be run.
    """
    upgrades = {each: upgrades_of(each) for each in baselines} if scope.upgrades else {}
    cases = _cases(scope, [name for names in upgrades.values() for name in names])
    paired = _paired(cases, scope)
    variants: list[Variant] = []
    groups: list[VariantGroup] = []

    def add(name: str, members: Sequence[Variant], repeats: int, *, compared: bool = False) -> None:
        variants.extend(members)
        *others, last = labels = tuple(each.label for each in members)
        pairs = tuple((each, last) for each in others) if compared else ()
        groups.append(VariantGroup(name, labels, repeats, pairs, spares=SPARES if compared else 0))

    def each_version(name: str) -> list[Variant]:
        versions = (*baselines, candidate)
        return [replace(of_case(cases[name], scope.profile, each), label=label(name, each)) for each in versions]

    for name in cases:
        if name not in paired:
            add(name, each_version(name), CERTAIN)
    alone = {name for names in upgrades.values() for name in names}.intersection(scope.only)
    for baseline, names in upgrades.items():
        wanted = {name: settings for name, settings in names.items() if name in alone or not alone}
        if wanted:
            add(" and ".join(wanted), _upgrades(candidate, baseline, wanted, scope.profile), CERTAIN)
            groups[-1] = replace(groups[-1], candidates=groups[-1].labels[1:])
    for name in paired:
        add(name, each_version(name), PAIRS if scope.pairs is None else scope.pairs, compared=True)
    return variants, groups


def _upgrades(
    candidate: str, baseline: str, scenarios: Mapping[str, tuple[str, ...]], profile: str
) -> tuple[Variant, ...]:
    """Return the restarts of a baseline, and the variant of each scenario that is held against them."""
    # The restarts are one of KIP-73's moves, and have as long as the others.
    limit_s = max(case.limit_s for case in find_suite("kip73").cases(profile))

    def variant(name: str, version: str, limit_s: float, *settings: str) -> Variant:
        return Variant(label(name, version), UPGRADE, profile, settings, baseline, limit_s=limit_s)

    # A downgrade starts each host twice, and the restarts start it once, so that it takes at most twice as long (on two
    # cores 155 s and 140 s). On a machine that is too slow for it, the restarts reach their limit, too.
    return (
        variant(f"{RESTARTS}{baseline}", baseline, limit_s, f"{TARGET}{SAME}"),
        *(variant(each, candidate, 2 * limit_s, f"{TARGET}{candidate}", *more) for each, more in scenarios.items()),
    )


def upgrades_of(baseline: str) -> dict[str, tuple[str, ...]]:
    """Return each scenario that changes the release from a baseline or back, and its settings besides the target."""
    return {f"{way}{baseline}": settings for way, settings in WAYS.items()}


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
            raise UsageError(f"--scenario: no scenario {name}; there are {', '.join(known)}{did_you_mean(name, known)}")
    return {name: case for name, case in every.items() if not scope.only or name in scope.only}


def _paired(cases: Mapping[str, Case], scope: QualificationScope) -> list[str]:
    if scope.paired is not None:
        for name in scope.paired:
            if name not in cases:
                near = did_you_mean(name, cases)
                raise UsageError(f"--paired: no scenario {name}; there are {', '.join(cases)}{near}")
        return list(dict.fromkeys(scope.paired))
    first = {case.experiment: name for name, case in reversed(list(cases.items()))}
    found = [first[experiment] for experiment in PAIRED if experiment in first]
    return found + [UNTHROTTLED] * (UNTHROTTLED in cases and not scope.measures)


def kind_of(group: VariantGroup) -> Kind:
    """Return how a group's scenario is run."""
    if group.pairs:
        return "paired"
    return "upgrade" if group.name.startswith(tuple(WAYS)) else "once"


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
    upgrades = [scenario_of(each) for group in groups if kind_of(group) == "upgrade" for each in group.sides[1]]
    suites = list(dict.fromkeys(name.partition("/")[0] for name in cases))
    words += [word for suite in suites for word in ("--suite", suite) if not set(suites) <= set(SUITES)]
    every = {*upgrades} == {name for each in baselines for name in upgrades_of(each)}
    words += [word for name in (*cases, *(() if cases and every else upgrades)) for word in ("--scenario", name)]
    paired = [group for group in groups if group.pairs]
    words += [word for group in paired for word in ("--paired", group.name)]
    words += ["--pairs", str(paired[0].repeats)] if paired else ["--no-pairs"]
    words += [] if upgrades else ["--no-upgrade"]
    words += [word for name in campaign.measures for word in ("--measure", name)]
    words += ["--threshold", f"{campaign.threshold * 100:g}"]
    words += ["--profile", campaign.variants[0].profile, "--seed", str(campaign.seed)]
    return shlex.join(words)
