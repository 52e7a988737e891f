"""A run's verdict for users and for programs."""

from collections.abc import Iterable

from results.contract.defect import DefectRecord, in_words
from results.contract.verdict import Finding
from results.criteria.judgement import skipped_lines
from results.render import document
from testbed.experiments.experiment_run import RunResult
from testbed.experiments.reports import RunFigure

WHOLE = 1e6
"""From this value on, numbers are shown without decimals, so that bytes are not shown as powers of ten."""
EXIT = {"pass": 0, "fail": 1, "inconclusive": 2}


def _observed(criterion: Finding) -> str:
    value = criterion.observed
    if value is None:
        return "nothing"
    if not isinstance(value, float | int):
        return value
    shown = f"{value:,.0f}" if abs(value) >= WHOLE else f"{value:,.6g}"
    return f"{shown} {criterion.unit}".rstrip()


def criterion_lines(criteria: Iterable[Finding]) -> list[str]:
    """Return a line per criterion, and its reason where it did not pass, unless the reason before was the same."""
    lines: list[str] = []
    last = ""
    for criterion in criteria:
        name = f"{criterion.name} {criterion.where}".rstrip()
        lines.append(
            f"{criterion.verdict.upper():<12}  {name:<34}  {_observed(criterion)}  (expected {criterion.expected})"
        )
        reason = "" if criterion.verdict == "pass" else criterion.why
        if reason and reason != last:
            lines.append(f"{'':14}{reason}")
        last = reason
    return lines


def figure_lines(figures: Iterable[RunFigure]) -> list[str]:
    """Return a line per figure; figures are not judged."""
    return [
        f"{'':<12}  {f'{f.name} {f.host} {f.direction}'.rstrip():<34}  {f.value:.3f} {f.unit}".rstrip() for f in figures
    ]


def defect_lines(defects: Iterable[DefectRecord]) -> list[str]:
    """Return a banner with a line per defect that the brokers had on purpose; empty without one."""
    lines = [f"BROKEN ON PURPOSE: {line}" for line in in_words(defects)]
    return [*lines, ""] if lines else []


def as_text(finished: RunResult) -> str:
    """Return a line per criterion, the verdict, and the report's path."""
    lines = [
        *defect_lines(finished.defects),
        *criterion_lines(finished.criteria),
        *skipped_lines(finished.skipped),
        "",
        *figure_lines(finished.figures),
    ]
    lines += ["", f"{finished.verdict.upper()}  {finished.experiment}  {finished.run_id}", f"report {finished.report}"]
    return "\n".join(lines)


def as_json(finished: RunResult) -> str:
    """Return one JSON document: run id, experiment, verdict, criteria, report, store."""
    return document(
        {
            "run_id": finished.run_id,
            "experiment": finished.experiment,
            "verdict": finished.verdict,
            "defects": finished.defects,
            "criteria": finished.criteria,
            "not_judged": finished.skipped,
            "figures": finished.figures,
            "report": finished.report,
            "store": finished.store,
        }
    )
