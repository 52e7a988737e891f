"""A qualification: its series made by the one runner, and what it came to, with every reason, and as files."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from results.compare import Finding, Rule
from results.compare.judgement import Verdict, worst_of
from results.compare.qualification import Cell, Qualification, Row, Said, judge_cells, never_kept
from results.compare.qualified import as_junit
from results.compare.told import line
from results.contract import durable
from results.contract.store import Store, StoreError
from results.report.qualification import Ground, render_qualification
from testbed.errors import TestbedError, UsageError
from testbed.experiments.reports import reports_dir
from testbed.runner.journal import opened
from testbed.runner.limits import QUALIFY
from testbed.runner.outcome import Broken, Outcome, by_block
from testbed.runner.qualification import SUITES, Scope, cells_of, kind_of, plan, spare, version_of
from testbed.runner.run import Progress, Result, begin, new_series, require_tellable, resume
from testbed.runner.series import Group, Series, SoFar, so_far
from testbed.runner.variant import resolve


def new_qualification(
    candidate: str,
    baselines: Sequence[str],
    scope: Scope,
    seed: int,
    *,
    store: str | None = None,
    measures: Sequence[str] = (),
    threshold: float = Rule().threshold,
) -> Series:
    """A qualification that can be run. Raises `UsageError` for what cannot."""
    variants, groups = plan(candidate, baselines, scope)
    if not groups:
        raise UsageError("nothing is left to run: no scenario, no upgrade")
    asked = new_series(
        QUALIFY, variants, 1, seed, store=store, measure_names=measures, threshold=threshold, groups=groups
    )
    require_tellable(asked)
    return asked


def qualify(
    asked: Series | None, series_id: str | None, budget_s: float | None, progress: Progress, *, all_pairs: bool = False
) -> Qualification:
    """Make the runs of a new qualification, or go on with one. Raises `UsageError` and `TestbedError`."""
    needless = spare(all_pairs)
    if series_id is not None:
        result = resume(series_id, asked, QUALIFY, budget_s, progress, stop_early=False, spare=needless)
    else:
        assert asked is not None
        result = begin(asked, budget_s, progress, stop_early=False, spare=needless)
    with opened(result.series.id) as journal:
        state = so_far(journal.entries)
    if not state.ran:
        raise TestbedError(f"nothing could be run: {result.why_ended}; --resume {result.series.id} goes on")
    return qualification(result, state)


def qualification(result: Result, state: SoFar) -> Qualification:
    """Everything that is said of the candidate. Pure but for the topologies' names."""
    series, blocks, first = result.series, by_block(result.series, state), 0
    rows = []
    for part in series.parts:
        cells = cells_of(series, state, part, first, blocks)
        rows.append(_row(series, part, cells, result.outcome))
        first += part.repeats
    candidate, baselines = versions(series)
    return Qualification(
        series.id,
        candidate,
        baselines,
        series.variants[0].profile,
        series.threshold,
        tuple(rows),
        result.why_ended,
        result.complete,
        series.store,
        command(series),
    )


def versions(series: Series) -> tuple[str, tuple[str, ...]]:
    """The candidate's name, and the baselines'."""
    candidate = version_of(series.parts[0].labels[-1])
    every = dict.fromkeys(version_of(each) for part in series.parts for each in part.labels)
    return candidate, tuple(each for each in every if each != candidate)


def _row(series: Series, part: Group, cells: Sequence[Cell], outcome: Outcome) -> Row:
    variant = series.variant(part.labels[-1])
    topology = resolve(variant).topology.name
    findings = tuple(
        each for each in outcome.findings if (each.comparison.baseline, each.comparison.candidate) in part.pairs
    )
    said = judge_cells(cells[-1], cells[:-1])
    if part.pairs:
        said = _paired(cells, findings, [each for each in outcome.broken if each.candidate == part.labels[-1]])
    return Row(part.name, variant.experiment, topology, kind_of(part), said, tuple(cells), findings)


def _paired(cells: Sequence[Cell], findings: Sequence[Finding], broken: Sequence[Broken]) -> Said:
    """What the pairs of a scenario say: measures, criteria that fail more often, and those that always fail."""
    reasons: list[str] = []
    notes: list[str] = []
    words: dict[str, list[str]] = {}
    for each in findings:
        if each.verdict == "OK":
            continue
        against = f" against {version_of(each.comparison.baseline)}" if len(cells) > 2 else ""
        words.setdefault(each.verdict, []).append(f"{each.verdict}{against}, {line(each, '')}")
    for one in broken:
        told = f"of {one.of} pairs judged on it, it failed in {one.runs} for the candidate alone, in {one.reverse} for "
        words.setdefault(one.verdict, []).append(
            f"{one.verdict}, {one.criterion}: {told}{version_of(one.baseline)} alone"
        )
    always = never_kept(cells[-1], cells[:-1])
    verdicts: list[Verdict] = [each.verdict for each in findings] + [each.verdict for each in broken]
    if always:
        verdicts.append("NOISY")
        reasons += always
    for found in words.values():
        reasons += found
    reasons = [*(f"{each.version}: {each.missing}" for each in cells if not each.ids and each.missing), *reasons]
    failing = ", ".join(f"{name} in {bad} of {of}" for name, (bad, of) in cells[-1].failing.items())
    if failing and not broken and not always:
        notes.append(f"failed in some runs, not more often than with the baseline: {failing}")
    return Said(worst_of(verdicts), tuple(reasons), tuple(notes))


def command(series: Series) -> str:
    """The command line that asks for the same runs."""
    once = [part for part in series.parts if kind_of(part) != "upgrade"]
    members = [series.variant(each) for each in (once or list(series.parts))[0].labels]
    *baselines, candidate = [each.kafka or "" for each in members]
    words = ["testbed", "qualify", "--kafka", candidate, *(["--against", *baselines])]
    names = [part.name for part in once]
    suites = list(dict.fromkeys(name.partition("/")[0] for name in names))
    words += [word for suite in suites for word in ("--suite", suite) if not set(suites) <= set(SUITES)]
    words += [word for name in names for word in ("--scenario", name)]
    paired = [part for part in series.parts if part.pairs]
    words += [word for part in paired for word in ("--paired", part.name)]
    words += ["--pairs", str(paired[0].repeats)] if paired else ["--no-pairs"]
    words += [] if any(kind_of(part) == "upgrade" for part in series.parts) else ["--no-upgrade"]
    words += [word for name in series.measures for word in ("--measure", name)]
    words += ["--threshold", f"{series.threshold * 100:g}"]
    words += ["--profile", series.variants[0].profile, "--seed", str(series.seed)]
    return shlex.join(words)


def write(found: Qualification, folder: Path) -> tuple[Path, Path]:
    """Write the page and JUnit's file; returns where they are."""
    page, junit = folder / "index.html", folder / "junit.xml"

    def link(run_id: str) -> str | None:
        """A copy beside the page, so that the folder can be carried away."""
        report = reports_dir() / f"{run_id}.html"
        if not report.is_file():
            return None
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        (folder / "runs" / report.name).write_bytes(report.read_bytes())
        return f"runs/{report.name}"

    _write(page, render_qualification(found, ground(found), link))
    _write(junit, as_junit(found))
    return page, junit


def ground(found: Qualification) -> Ground | None:
    """What the newest run was made on; None when there is none."""
    ids = sorted(run_id for row in found.rows for each in row.cells for run_id in each.ids)
    if not ids:
        return None
    try:
        run = Store.open(found.store).manifest(ids[-1])
        oldest = Store.open(found.store).manifest(ids[0])
    except StoreError as error:
        raise TestbedError(f"a run of {found.id} cannot be read: {error}") from error
    return Ground(oldest.started, run.ended, run.machine, run.versions)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, text)
