"""The runs of a qualification: versions × scenarios, as one campaign with a group for each scenario.

A *once* scenario is a case of a suite, run with each version. A ready incident is one: its fixed variant must pass. If
the candidate fails or is inconclusive, it is run again, up to three times. A *paired* scenario is run as by
`testbed compare`. An *upgrade* begins with a baseline and ends with the candidate while data moves; its counterpart
merely restarts the same brokers.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from results.compare import ComparisonResult, ComparisonRule
from results.compare.judgement import Verdict, worst_of
from results.compare.qualification import (
    CERTAIN,
    Kind,
    Qualification,
    QualificationVerdict,
    ScenarioQualification,
    VersionResult,
    as_junit,
    doubtful,
    judge_cells,
    never_kept,
)
from results.compare.render import comparison_row
from results.contract import durable
from results.contract.store import Store, StoreError
from results.report.qualification import QualificationEnvironment, render_qualification
from testbed.errors import TestbedError, UsageError
from testbed.paths import reports_dir
from testbed.runner.campaign import QUALIFY, Campaign, VariantGroup, new_campaign, require_enough_pairs
from testbed.runner.comparison import CampaignOutcome, CriterionRegression, findings, narrow_enough
from testbed.runner.journal import CampaignState, SlotRun, campaign_state, opened
from testbed.runner.pairing import by_block
from testbed.runner.run import CampaignResult, Progress, begin, resume
from testbed.runner.schedule import Slot
from testbed.runner.variant import UPGRADE, Variant, called, of_case, resolve
from testbed.software.source import parse_source
from testbed.suggestions import did_you_mean
from testbed.suites.suite import Case, find_suite
from testbed.topology.find import find

SUITES = ("kip73", "kip435", "kip455", "s3", "incidents")
UPGRADE_FROM, DOWNGRADE_TO = "upgrade from ", "downgrade to "
"""How the names of these scenarios begin; the baseline's version follows."""
PAIRED = ("kip73-two-node", "kip73-one-to-two-produce", "kip73-two-to-one-produce")
"""Experiments whose first case is run in pairs: a move alone, one that a leader limits, one that a follower limits.

The last two run under load.
"""


@dataclass(frozen=True, slots=True)
class QualificationScope:
    """The scenarios of a qualification.

    `only` and `paired` name them as `SUITE/CASE`; `paired` None means the default ones.
    """

    profile: str = "ci"
    suites: tuple[str, ...] = SUITES
    only: tuple[str, ...] = ()
    paired: tuple[str, ...] | None = None
    pairs: int = 10
    upgrades: bool = True


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
            raise UsageError(f"two of them are called {name}: {text} and another; a release is not held against itself")
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

    A short budget thus costs precision before it costs scenarios. In each group the candidate is last. Raise
    `UsageError` when a scenario cannot be run.
    """
    known = names(candidate, baselines)
    cases = _cases(scope)
    paired = _paired(cases, scope)
    variants: list[Variant] = []
    groups: list[VariantGroup] = []

    def add(name: str, members: Sequence[Variant], repeats: int, compared: bool) -> None:
        labels = tuple(each.label for each in members)
        pairs = tuple((each, labels[-1]) for each in labels[:-1]) if compared else ()
        variants.extend(members)
        groups.append(VariantGroup(name, labels, repeats, pairs))

    def each_version(name: str, case: Case) -> list[Variant]:
        return [
            replace(of_case(case, scope.profile, text), label=label(name, version)) for text, version in known.items()
        ]

    for name, case in cases.items():
        if name not in paired:
            add(name, each_version(name, case), CERTAIN, compared=False)
    for text in baselines if scope.upgrades else ():
        target = f"to={parse_source(candidate)}"
        for way, settings in ((UPGRADE_FROM, (target,)), (DOWNGRADE_TO, (target, "direction=down"))):
            name = f"{way}{known[text]}"
            members = [
                Variant(label(name, known[text]), UPGRADE, scope.profile, ("to=same",), text),
                Variant(label(name, known[candidate]), UPGRADE, scope.profile, settings, text),
            ]
            add(name, members, CERTAIN, compared=False)
    for name in paired:
        add(name, each_version(name, cases[name]), scope.pairs, compared=True)
    return variants, groups


def _cases(scope: QualificationScope) -> dict[str, Case]:
    every = {
        f"{suite}/{case.name}": case
        for suite in scope.suites
        for case in find_suite(suite).cases(scope.profile)
        if case.topology is None or find(case.topology).automq is None  # AutoMQ is no release of Kafka
    }
    for name in scope.only:
        if name not in every:
            raise UsageError(f"--scenario {name}: there are {', '.join(every)}{did_you_mean(name, every)}")
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


def cells_of(
    campaign: Campaign, state: CampaignState, group: VariantGroup, first: int, blocks: Sequence[Mapping[str, SlotRun]]
) -> list[VersionResult]:
    """Return the result of each version in a scenario so far.

    `first` is the group's first block, `blocks` are the campaign's.
    """
    return [
        cell(
            each, [runs[each] for runs in blocks[first : first + group.repeats] if each in runs], _why(campaign, state)
        )
        for each in group.labels
    ]


def cell(variant: str, ran: Sequence[SlotRun], why: Mapping[str, str]) -> VersionResult:
    """Return the result of one variant's runs. An inconclusive run counts for no criterion."""
    verdicts = [each.done.verdict for each in ran]
    counts: dict[str, tuple[int, int]] = {}
    for each in ran:
        if each.done.verdict == "inconclusive":
            continue
        for name in (*each.done.failed, *each.done.kept):
            bad, of = counts.get(name, (0, 0))
            counts[name] = (bad + (name in each.done.failed), of + 1)
    return VersionResult(
        version_of(variant),
        {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
        tuple(each.done.run_id for each in ran),
        counts,
        "" if ran else why.get(variant, ""),
    )


def _why(campaign: Campaign, state: CampaignState) -> dict[str, str]:
    """Return for each variant the reason of its last failure."""
    labels = {slot.index: slot.variant for slot in campaign.slots}
    return {labels[failure.slot]: f"it could not be run: {failure.why}" for failure in state.failures}


def needless_slots(all_pairs: bool) -> Callable[[Campaign], Callable[[Slot, CampaignState], bool]]:
    """Return a function that finds the needless slots of a campaign.

    The second and the third run of a scenario are needless where the first run decides. Unless `all_pairs`, pairs are
    needless once every interval of their scenario is narrow enough.
    """

    def of(campaign: Campaign) -> Callable[[Slot, CampaignState], bool]:
        def not_needed(slot: Slot, state: CampaignState) -> bool:
            group, first = campaign.group_of(slot)
            blocks = by_block(campaign, state)
            if group.pairs:
                return not all_pairs and not blocks[slot.block] and _known(campaign, state, group)
            if slot.block == first:
                return False
            cells = cells_of(campaign, state, group, first, blocks)
            candidate = cells[-1]
            if not candidate.ids:
                return True  # the first run failed, so only that run is tried again
            if slot.variant == group.labels[-1]:
                return not doubtful(candidate)
            return not candidate.runs.get("fail")

        return not_needed

    return of


def _known(campaign: Campaign, state: CampaignState, group: VariantGroup) -> bool:
    mine = [
        each
        for each in findings(campaign, state)
        if (each.comparison.baseline, each.comparison.candidate) in group.pairs
    ]
    return narrow_enough(mine, campaign.threshold) is not None


def new_qualification(
    candidate: str,
    baselines: Sequence[str],
    scope: QualificationScope,
    seed: int,
    *,
    store: str | None = None,
    measures: Sequence[str] = (),
    threshold: float = ComparisonRule().threshold,
) -> Campaign:
    """Return a qualification's campaign. Raise `UsageError` when it cannot be run."""
    variants, groups = plan(candidate, baselines, scope)
    if not groups:
        raise UsageError("nothing is left to run: no scenario, no upgrade")
    asked = new_campaign(
        QUALIFY, variants, 1, seed, store=store, measure_names=measures, threshold=threshold, groups=groups
    )
    require_enough_pairs(asked)
    return asked


def qualify(
    asked: Campaign | None,
    campaign_id: str | None,
    budget_s: float | None,
    progress: Progress,
    *,
    all_pairs: bool = False,
) -> Qualification:
    """Make the runs of a new qualification, or resume one, and return it.

    Raise `UsageError` when it cannot be resumed, and `TestbedError` when it fails.
    """
    needless = needless_slots(all_pairs)
    if campaign_id is not None:
        result = resume(campaign_id, asked, QUALIFY, budget_s, progress, stop_early=False, needless=needless)
    else:
        assert asked is not None
        result = begin(asked, budget_s, progress, stop_early=False, needless=needless)
    with opened(result.campaign.id) as journal:
        state = campaign_state(journal.entries)
    if not state.ran:
        raise TestbedError(f"nothing could be run: {result.why_ended}; --resume {result.campaign.id} goes on")
    return qualification(result, state)


def qualification(result: CampaignResult, state: CampaignState) -> Qualification:
    """Return the qualification with all findings about the candidate.

    Pure, except that it reads the topologies' names.
    """
    campaign, blocks, first = result.campaign, by_block(result.campaign, state), 0
    rows = []
    for group in campaign.variant_groups:
        cells = cells_of(campaign, state, group, first, blocks)
        rows.append(_row(campaign, group, cells, result.outcome))
        first += group.repeats
    candidate, baselines = versions(campaign)
    return Qualification(
        campaign.id,
        candidate,
        baselines,
        campaign.variants[0].profile,
        campaign.threshold,
        tuple(rows),
        result.why_ended,
        result.complete,
        campaign.store,
        command(campaign),
    )


def versions(campaign: Campaign) -> tuple[str, tuple[str, ...]]:
    """Return the name of the candidate, and the names of the baselines."""
    candidate = version_of(campaign.variant_groups[0].labels[-1])
    every = dict.fromkeys(version_of(each) for group in campaign.variant_groups for each in group.labels)
    return candidate, tuple(each for each in every if each != candidate)


def _row(
    campaign: Campaign, group: VariantGroup, cells: Sequence[VersionResult], outcome: CampaignOutcome
) -> ScenarioQualification:
    variant = campaign.variant(group.labels[-1])
    topology = resolve(variant).topology.name
    findings = tuple(
        each for each in outcome.findings if (each.comparison.baseline, each.comparison.candidate) in group.pairs
    )
    said = judge_cells(cells[-1], cells[:-1])
    if group.pairs:
        said = _judge_pairs(cells, findings, [each for each in outcome.broken if each.candidate == group.labels[-1]])
    return ScenarioQualification(group.name, variant.experiment, topology, kind_of(group), said, tuple(cells), findings)


def _judge_pairs(
    cells: Sequence[VersionResult], findings: Sequence[ComparisonResult], broken: Sequence[CriterionRegression]
) -> QualificationVerdict:
    """Return the verdict of a scenario's pairs: measures, criteria failing more often, criteria failing always."""
    reasons: list[str] = []
    notes: list[str] = []
    words: dict[str, list[str]] = {}
    for each in findings:
        if each.verdict == "OK":
            continue
        against = f" against {version_of(each.comparison.baseline)}" if len(cells) > 2 else ""
        words.setdefault(each.verdict, []).append(f"{each.verdict}{against}, {comparison_row(each, '')}")
    for one in broken:
        counts = f"of {one.of} pairs judged on it, it failed in {one.runs} for the candidate alone, "
        counts += f"in {one.reverse} for "
        words.setdefault(one.verdict, []).append(
            f"{one.verdict}, {one.criterion}: {counts}{version_of(one.baseline)} alone"
        )
    always = never_kept(cells[-1], cells[:-1])
    verdicts: list[Verdict] = [each.verdict for each in findings] + [each.verdict for each in broken]
    if always:
        verdicts.append("NOISY")
        reasons += always
    for found in words.values():
        reasons += found
    reasons = [*(f"{each.version}: {each.missing}" for each in cells if not each.ids and each.missing), *reasons]
    said = {each.criterion for each in broken}
    for name, (bad, of) in cells[-1].failing.items():
        if name not in said and not always:
            beside = ", ".join(
                f"with {each.version} in {each.counts(name)[0]} of {each.counts(name)[1]}" for each in cells[:-1]
            )
            notes.append(f"{name} failed in {bad} of {of}, {beside}: too few to say more")
    return QualificationVerdict(worst_of(verdicts), tuple(reasons), tuple(notes))


def command(campaign: Campaign) -> str:
    """Return the command line that starts the same runs."""
    once = [group for group in campaign.variant_groups if kind_of(group) != "upgrade"]
    members = [campaign.variant(each) for each in (once or list(campaign.variant_groups))[0].labels]
    *baselines, candidate = [each.kafka or "" for each in members]
    words = ["testbed", "qualify", "--kafka", candidate, *(["--against", *baselines])]
    names = [group.name for group in once]
    suites = list(dict.fromkeys(name.partition("/")[0] for name in names))
    words += [word for suite in suites for word in ("--suite", suite) if not set(suites) <= set(SUITES)]
    words += [word for name in names for word in ("--scenario", name)]
    paired = [group for group in campaign.variant_groups if group.pairs]
    words += [word for group in paired for word in ("--paired", group.name)]
    words += ["--pairs", str(paired[0].repeats)] if paired else ["--no-pairs"]
    words += [] if any(kind_of(group) == "upgrade" for group in campaign.variant_groups) else ["--no-upgrade"]
    words += [word for name in campaign.measures for word in ("--measure", name)]
    words += ["--threshold", f"{campaign.threshold * 100:g}"]
    words += ["--profile", campaign.variants[0].profile, "--seed", str(campaign.seed)]
    return shlex.join(words)


def write(found: Qualification, folder: Path) -> tuple[Path, Path]:
    """Write the page and the JUnit file; return their paths."""
    page, junit = folder / "index.html", folder / "junit.xml"

    def link(run_id: str) -> str | None:
        """Copy a run's report next to the page, so that the folder is self-contained, and return the link."""
        report = reports_dir() / f"{run_id}.html"
        if not report.is_file():
            return None
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        (folder / "runs" / report.name).write_bytes(report.read_bytes())
        return f"runs/{report.name}"

    _write(page, render_qualification(found, qualification_environment(found), link))
    _write(junit, as_junit(found))
    return page, junit


def qualification_environment(found: Qualification) -> QualificationEnvironment | None:
    """Return the environment of the newest run, or None without a run."""
    ids = sorted(run_id for row in found.rows for each in row.cells for run_id in each.ids)
    if not ids:
        return None
    try:
        run = Store.open(found.store).manifest(ids[-1])
        oldest = Store.open(found.store).manifest(ids[0])
    except StoreError as error:
        raise TestbedError(f"a run of {found.id} cannot be read: {error}") from error
    return QualificationEnvironment(oldest.started, run.ended, run.machine, run.versions)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, text)
