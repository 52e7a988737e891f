"""A release's qualification as one HTML page for the release manager: the verdict, every reason, the matrix.

Style is inlined and the picture is SVG; nothing is loaded from anywhere. Runs' own reports are linked.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from results.compare.effect import Effect, Shift
from results.compare.judgement import ComparisonResult, Verdict
from results.compare.qualification import Kind, Qualification, ScenarioQualification
from results.compare.qualification_text import cell_text, headline
from results.compare.render import ComparisonRow, comparison_row
from results.compare.scenario_judgement import VersionResult
from results.contract.manifest import Machine, Versions
from results.contract.texts import plural
from results.render import NOTHING
from results.report.nights import STATES, WORDS
from results.report.page import Figure
from results.report.render import inline, template

Links = Callable[[str], str | None]
"""A run's id → where its own report is, relative to the page; None when there is none."""
GROUPS: tuple[tuple[Kind, str, str], ...] = (
    (
        "once",
        "Scenarios",
        "Each version ran each scenario once; where the candidate failed or had no end, all ran it up to three times. "
        "A scenario has regressed when a criterion failed in every one of three runs, and held with a baseline. A run "
        "that Kafka did not let end fails run-complete.",
    ),
    (
        "upgrade",
        "Rolling upgrades and downgrades, a reassignment in flight",
        "Brokers go from the baseline to the candidate, or back, one after the other while data moves under a throttle "
        "and clients write. Both are compared with the same restarts of the baseline's brokers.",
    ),
    (
        "paired",
        "Performance against the baseline",
        "Runs in pairs, in turned order (A B, B A), canaries before and after each; the scenarios take turns. The "
        "interval is of the change; p is that of a change beyond the threshold, adjusted for all comparisons of this "
        "page. A scenario has also regressed when the candidate's runs have no end more often than chance explains, or "
        "when a criterion fails in all of them, three at least, and in none of a baseline.",
    ),
)
NEXT: Mapping[Verdict, str] = {
    "REGRESSED": "read the reports of its runs, which are linked below: they name what failed, and by how much. Of a "
    "run without an end, read the log or the stacks that the reason names.",
    "NOISY": "qualify this scenario alone (--scenario), in pairs with more of them (--paired, --pairs). Where all runs "
    "fail, more of them do not decide: read their reports.",
    "ENV-CHANGED": "qualify this scenario alone (--scenario), while nothing else runs on the machine.",
    "NO-DATA": "--resume makes runs that are missing. Where runs were inconclusive, remove the cause that is named, "
    "and qualify this scenario alone (--scenario).",
}
"""What the reader does about a reason."""
WIDTH, MIDDLE = 150.0, 75.0
"""Of an interval's picture, in px; the middle is no change."""


@dataclass(frozen=True, slots=True)
class QualificationEnvironment:
    """What the runs were made on, and between when."""

    began: str
    ended: str
    machine: Machine
    versions: Versions


@dataclass(frozen=True, slots=True)
class VersionCell:
    """A version in a scenario as the matrix shows it."""

    state: str
    word: str
    note: str
    runs: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """A scenario as the page shows it."""

    row: ScenarioQualification
    state: str
    word: str
    cells: tuple[VersionCell, ...]


@dataclass(frozen=True, slots=True)
class ComparisonChart:
    """A comparison as the page shows it: `span` is the interval in px from the left, `mark` the change; None without
    an effect."""

    state: str
    word: str
    scenario: str
    against: str
    line: ComparisonRow
    levels: str
    band: tuple[float, float]
    """Px: where the change does not count."""
    span: tuple[float, float] | None
    mark: float | None
    detectable: str


@dataclass(frozen=True, slots=True)
class QualificationSection:
    """Scenarios of one kind."""

    kind: Kind
    title: str
    hint: str
    rows: tuple[ScenarioRow, ...]
    versions: tuple[str, ...]


def render_qualification(found: Qualification, environment: QualificationEnvironment | None, link: Links) -> str:
    """Return the page as HTML text."""
    widest = _widest(found)
    return template("qualification.html.j2").render(
        found=found,
        headline=headline(found),
        state=STATES[found.verdict],
        word=WORDS[found.verdict],
        answer=answer(found),
        figures=figures(found, environment),
        reasons=[(STATES[verdict], WORDS[verdict], name, because) for verdict, name, because in found.named_reasons],
        then=[(WORDS[verdict], what) for verdict, what in NEXT.items() if verdict in found.verdicts],
        by_luck=[str(each) for each in found.log_lines if each.verdict == "OK"],
        sections=sections(found, link),
        measured=comparisons(found, widest),
        scale=f"{widest * 100:.0f} %",
        width=WIDTH,
        middle=MIDDLE,
        environment=environment,
        nothing=NOTHING,
        style=inline("templates/report.css") + inline("templates/suite.css") + inline("templates/qualification.css"),
    )


def answer(found: Qualification) -> str:
    """Return the verdict in one sentence."""
    by: dict[Verdict, int] = {}
    for row in found.rows:
        by[row.said.verdict] = by.get(row.said.verdict, 0) + 1
    words = {verdict: "OK" if verdict == "OK" else WORDS[verdict].lower() for verdict in by}
    counts = ", ".join(f"{count} {words[verdict]}" for verdict, count in by.items())
    opening = {
        "REGRESSED": "Do not release it as it is",
        "OK": "Nothing stands against it",
        "IMPROVED": "Nothing stands against it",
    }.get(found.verdict, "It cannot be said yet")
    new = sum(each.verdict != "OK" for each in found.log_lines)
    lines = f"; {plural(new, 'new log line')}" if new else ""
    return f"{opening}: of {plural(len(found.rows), 'scenario')} {counts or 'none was run'}{lines}."


def figures(found: Qualification, environment: QualificationEnvironment | None) -> tuple[Figure, ...]:
    """Return the few numbers that one remembers."""
    # The restarts of a baseline are cells of its upgrade and of its downgrade.
    cells = {(each.ids, each.stuck): each for row in found.rows for each in row.cells}.values()
    fine = sum(row.said.verdict in ("OK", "IMPROVED") for row in found.rows)
    runs = [Figure("Scenarios without objection", str(fine), f"of {len(found.rows)}", "")]
    made = sum(each.tried for each in cells)
    runs.append(Figure("Runs", str(made), "", f"{sum(each.judged for each in cells)} could be judged"))
    measured = [each for row in found.rows for each in row.findings if each.effect is not None]
    if measured:
        runs.append(_worst_change(measured, found.threshold))
    if environment is not None:
        machine = environment.machine
        runs.append(Figure("Machine", str(machine.cores), "cores", f"{machine.cpu_model}, kernel {machine.kernel}"))
    return tuple(runs)


def _worst_change(measured: Sequence[ComparisonResult], threshold: float) -> Figure:
    """Return the change for the worse that is the largest multiple of its measure's threshold."""
    worst = max(measured, key=lambda each: _thresholds_worse(each, threshold))
    times, change = _thresholds_worse(worst, threshold), comparison_row(worst, "")
    shown, note = "none", f"in {plural(len(measured), 'comparison')}"
    if times > 0:
        shown, note = change.change, f"{change.measure}; {change.interval}; {times:.2g} × its threshold"
    return Figure("Largest change for the worse", shown, "", note)


def _thresholds_worse(finding: ComparisonResult, threshold: float) -> float:
    """Return how many thresholds the candidate is worse by; negative where it is better."""
    measure, effect = finding.comparison.measure, finding.effect
    if effect is None:
        return -math.inf
    if isinstance(effect, Shift):
        change = effect.difference / effect.limit
    else:
        change = (effect.ratio - 1) / measure.limit(threshold)
    return change if measure.better == "lower" else -change


def sections(found: Qualification, link: Links) -> tuple[QualificationSection, ...]:
    """Return the scenarios by kind, worst first in each."""
    made = []
    for kind, title, hint in GROUPS:
        rows = tuple(_scenario_row(row, found, link) for row in found.worst_first if row.kind == kind)
        if rows:
            made.append(QualificationSection(kind, title, hint, rows, (*found.baselines, found.candidate)))
    return tuple(made)


def _scenario_row(row: ScenarioQualification, found: Qualification, link: Links) -> ScenarioRow:
    known = {each.version: each for each in row.cells}
    cells = tuple(_cell(known.get(version), link) for version in (*found.baselines, found.candidate))
    return ScenarioRow(row, STATES[row.said.verdict], WORDS[row.said.verdict], cells)


def _cell(one: VersionResult | None, link: Links) -> VersionCell:
    if one is None:
        return VersionCell("", NOTHING, "", ())
    state = "pass" if one.judged else "inconclusive"
    if one.stuck or one.runs.get("fail"):
        state = "fail"
    failing = ", ".join(f"{name} in {bad} of {of}" for name, (bad, of) in one.failing.items())
    note = failing or one.missing
    return VersionCell(state, cell_text(one), note, tuple((run_id, link(run_id)) for run_id in one.ids))


def comparisons(found: Qualification, widest: float) -> tuple[ComparisonChart, ...]:
    """Return every comparison, worst first, with where its interval lies in the picture."""
    pairs = [(row, finding) for row in found.worst_first for finding in row.findings]
    made = []
    for row, finding in pairs:
        effect, shown = finding.effect, comparison_row(finding, row.name)
        limit = finding.comparison.measure.limit(found.threshold)
        span = mark = None
        if isinstance(effect, Effect):  # a difference in seconds has no place in a picture of percent
            span, mark = (_at(effect.low - 1, widest), _at(effect.high - 1, widest)), _at(effect.ratio - 1, widest)
        made.append(
            ComparisonChart(
                STATES[finding.verdict],
                WORDS[finding.verdict],
                row.name,
                finding.comparison.baseline.rpartition(", ")[2],
                shown,
                f"{shown.before.split(' ')[0]} → {shown.after}",
                (_at(-limit, widest), _at(limit, widest)),
                span,
                mark,
                "" if finding.detectable is None else f"{finding.detectable * 100:.1f} %",
            )
        )
    return tuple(made)


def _widest(found: Qualification) -> float:
    """Return half the picture's width as a change.

    Wide enough for four thresholds, and for every interval up to 50 %.
    """
    ends = [
        abs(end - 1)
        for row in found.rows
        for each in row.findings
        if isinstance(each.effect, Effect)
        for end in (each.effect.low, each.effect.high)
        if math.isfinite(end)
    ]
    return max(4 * found.threshold, min(0.5, max(ends, default=0.0)))


def _at(change: float, widest: float) -> float:
    """Return px from the left; what is further out than the picture lies on its edge."""
    return round(MIDDLE + max(-1.0, min(1.0, change / widest)) * (MIDDLE - 4), 1)
