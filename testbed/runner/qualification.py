"""The runs of a qualification as one campaign, and what they say of the candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from results.compare.judgement import ComparisonResult, ComparisonRule, Verdict, of_records, worst_of
from results.compare.qualification import Qualification, ScenarioQualification
from results.compare.qualification_text import as_junit
from results.compare.render import comparison_row
from results.compare.scenario_judgement import (
    QualificationVerdict,
    VersionResult,
    always_failed,
    inconclusive,
    judge_cells,
    without_end,
)
from results.contract import durable
from results.contract.store import Store, StoreError
from results.contract.texts import plural
from results.contract.verdict import Finding
from results.report.qualification import QualificationEnvironment, render_qualification
from results.verdicts import rank
from testbed.errors import TestbedError, UsageError
from testbed.experiments.experiment_run import Progress
from testbed.paths import reports_dir
from testbed.runner.campaign import (
    QUALIFY,
    Campaign,
    VariantGroup,
    fewest_pairs,
    new_campaign,
    require_comparable,
    require_enough_pairs,
)
from testbed.runner.campaign_run import run_campaign
from testbed.runner.comparison import CampaignOutcome, CriterionRegression
from testbed.runner.pairs import by_group
from testbed.runner.qualification_plan import (
    command,
    kind_of,
    named,
    permanent,
    plan,
    require_known,
    require_upgrades,
    scenario_of,
    version_of,
    versions,
)
from testbed.runner.qualification_scope import PAIRS, QualificationScope
from testbed.runner.variant import resolve
from testbed.runner.version_results import cells_of, needless_slot, of_group


def causes_in(store: Store, run_id: str) -> list[Finding]:
    """Return the findings that make a run inconclusive, without criteria that were not judged for that reason.

    Raise `TestbedError` when the store does not have them.
    """
    try:
        doubts = [each for each in store.criteria(run_id) if each.verdict == "inconclusive"]
    except StoreError as error:
        raise TestbedError(f"why {run_id} is inconclusive cannot be read: {error}") from error
    return [each for each in doubts if not each.why.startswith("not judged")]


def new_qualification(
    candidate: str,
    baselines: Sequence[str],
    scope: QualificationScope,
    seed: int,
    *,
    store: str | None = None,
    threshold: float = ComparisonRule().threshold,
) -> Campaign:
    """Return the campaign. Raise `UsageError` before a Kafka is fetched if possible, and errors as `permanent` does."""
    require_known(named(candidate, baselines)[:-1], scope)
    require_comparable(QUALIFY, scope.measures, threshold)
    new, before = permanent(candidate, baselines)
    variants, groups = plan(new, before, scope)
    if not groups:
        raise UsageError(
            "the options leave neither a scenario nor an upgrade to run; give another --suite or --scenario, or leave "
            "--no-upgrade out"
        )
    asked = new_campaign(
        QUALIFY, variants, 1, seed, store=store, measure_names=scope.measures, threshold=threshold, groups=groups
    )
    if scope.pairs is None:
        fewest = max(PAIRS, fewest_pairs(asked))
        more = (replace(group, repeats=fewest) if group.pairs else group for group in asked.groups)
        asked = replace(asked, groups=tuple(more))
    require_enough_pairs(asked)
    require_upgrades(new, groups)
    return asked


def qualify(
    asked: Campaign | None,
    campaign_id: str | None,
    budget_s: float | None,
    progress: Progress,
    *,
    all_pairs: bool = False,
) -> Qualification:
    """Make a qualification's runs, or resume it; return it. Raise `UsageError`, and `TestbedError` when it fails."""
    needless = partial(needless_slot, all_pairs=all_pairs)
    result = run_campaign(asked, campaign_id, QUALIFY, budget_s, progress, needless=needless)
    campaign, state = result.campaign, result.state
    if not state.ran:
        raise TestbedError(f"nothing could be run: {result.why_ended}; --resume {campaign.id} continues")
    causes = partial(causes_in, Store.open(campaign.store))
    rows = [
        _row(campaign, each.group, label, cells_of(campaign, state, each, causes), result.outcome)
        for each in by_group(campaign, state)
        for label in each.group.sides[1]
    ]
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
        result.outcome.lines,
    )


def _row(
    campaign: Campaign,
    group: VariantGroup,
    label: str,
    results: Mapping[str, VersionResult],
    outcome: CampaignOutcome,
) -> ScenarioQualification:
    """Return the scenario that the candidate's variant `label` runs, from the results of its group."""
    variant = campaign.variant(label)
    topology = resolve(variant).topology.name
    findings = of_group(outcome.findings, group)
    baselines, candidate = [results[each] for each in group.sides[0]], results[label]
    said = judge_cells(candidate, baselines)
    if group.pairs:
        broken = [each for each in outcome.broken if each.candidate == label]
        said = _judge_pairs(candidate, baselines, findings, broken)
    cells = (*baselines, candidate)
    return ScenarioQualification(
        scenario_of(label), variant.experiment, topology, kind_of(group), said, cells, findings
    )


def _judge_pairs(
    candidate: VersionResult,
    baselines: Sequence[VersionResult],
    findings: Sequence[ComparisonResult],
    broken: Sequence[CriterionRegression],
) -> QualificationVerdict:
    """Return the verdict of pairs: of measures, and criteria that fail more often or always; the worst reason first."""
    regressed = {each.criterion for each in broken if each.verdict == "REGRESSED"}
    always = {name: one for name, one in always_failed(candidate, baselines).items() if name not in regressed}
    broken = [each for each in broken if each.criterion not in always]
    named = {*always, *(each.criterion for each in broken)}
    said: list[tuple[Verdict, str]] = [
        ("NO-DATA", f"{each.version}: {each.missing}")
        for each in (*baselines, candidate)
        if not each.ids and each.missing
    ]
    for one in (*always.values(), *without_end(candidate, baselines)):
        said += [(one.verdict, reason) for reason in one.reasons]
    for each in findings:
        if each.verdict != "OK":
            against = f" against {version_of(each.comparison.baseline)}" if len(baselines) > 1 else ""
            said.append((each.verdict, f"{each.verdict}{against}, {comparison_row(each, '')}"))
    for more in broken:
        counts = f"of {more.of} pairs judged on it, it failed in {more.runs} for the candidate alone"
        old = version_of(more.baseline)
        counts += f", in {more.reverse} for {old} alone"
        counts += f"; in {plural(more.unpaired, 'run')} more where {old} was not judged" if more.unpaired else ""
        lost = more.verdict == "NOISY" and of_records(more.criterion)
        counts += ": no machine loses a record: read its report" if lost else ""
        said.append((more.verdict, f"{more.verdict}, {more.criterion}: {counts}"))
    notes = [
        f"{each.version}: {inconclusive(each)}" for each in (*baselines, candidate) if each.runs.get("inconclusive")
    ]
    for name, (bad, of) in candidate.failing.items():
        if name not in named:
            counts = ", ".join("with {} in {} of {}".format(each.version, *each.counts(name)) for each in baselines)
            notes.append(f"{name} failed in {bad} of {of}, {counts}: the pairs do not tell them apart")
    said.sort(key=lambda each: rank(each[0]))
    # A measure that did not change says OK, and has no reason.
    verdict = worst_of([*(each.verdict for each in findings), *(word for word, _reason in said)])
    return QualificationVerdict(verdict, tuple(reason for _, reason in said), tuple(notes))


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

    folder.mkdir(parents=True, exist_ok=True)
    durable.write(page, render_qualification(found, qualification_environment(found), link))
    durable.write(junit, as_junit(found))
    return page, junit


def qualification_environment(found: Qualification) -> QualificationEnvironment | None:
    """Return the environment of the newest run, or None without a run."""
    ids = sorted(run_id for row in found.rows for each in row.cells for run_id in each.ids)
    if not ids:
        return None
    try:
        oldest, run = (Store.open(found.store).manifest(run_id) for run_id in (ids[0], ids[-1]))
    except StoreError as error:
        raise TestbedError(f"a run of {found.id} cannot be read: {error}") from error
    return QualificationEnvironment(oldest.started, run.ended, run.machine, run.versions)
