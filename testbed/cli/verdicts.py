"""A run's verdict for people and for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from results.contract.schema import Finding
from results.criteria.judgement import skipped_lines
from results.render import document
from testbed.experiments.reports import RunFigure
from testbed.experiments.runner import RunResult

EXIT = {"pass": 0, "fail": 1, "inconclusive": 2}


def _observed(criterion: Finding) -> str:
    value = criterion.observed
    if value is None:
        return "nothing"
    return f"{value:,.6g} {criterion.unit}".rstrip() if isinstance(value, float | int) else value


def criterion_lines(criteria: Iterable[Finding]) -> list[str]:
    """A line per criterion, and a second one saying why where it did not pass."""
    lines = []
    for criterion in criteria:
        where = " ".join(part for part in (criterion.host, criterion.direction) if part)
        name = f"{criterion.name} {where}".rstrip()
        lines.append(
            f"{criterion.verdict.upper():<12}  {name:<34}  {_observed(criterion)}  (expected {criterion.expected})"
        )
        if criterion.verdict != "pass" and criterion.why:
            lines.append(f"{'':14}{criterion.why}")
    return lines


def figure_lines(figures: Iterable[RunFigure]) -> list[str]:
    """A line per figure that is told but not judged."""
    return [
        f"{'':<12}  {f'{f.name} {f.host} {f.direction}'.rstrip():<34}  {f.value:.3f} {f.unit}".rstrip() for f in figures
    ]


def as_text(finished: RunResult) -> str:
    """A line per criterion, the verdict, and where the report is."""
    lines = [
        *criterion_lines(finished.criteria),
        *skipped_lines(finished.skipped),
        "",
        *figure_lines(finished.figures),
    ]
    lines += ["", f"{finished.verdict.upper()}  {finished.experiment}  {finished.run_id}", f"report {finished.report}"]
    return "\n".join(lines)


def criteria_document(criteria: Iterable[Finding]) -> list[dict[str, Any]]:
    """Criteria as JSON has them."""
    return [
        {
            "name": c.name,
            "host": c.host,
            "direction": c.direction,
            "expected": c.expected,
            "observed": c.observed,
            "unit": c.unit,
            "tolerance": c.tolerance,
            "verdict": c.verdict,
            "why": c.why,
            "series": list(c.series),
        }
        for c in criteria
    ]


def as_json(finished: RunResult) -> str:
    """One document: run id, experiment, verdict, criteria, report, store."""
    return document(
        {
            "run_id": finished.run_id,
            "experiment": finished.experiment,
            "verdict": finished.verdict,
            "criteria": criteria_document(finished.criteria),
            "not_judged": [asdict(each) for each in finished.skipped],
            "figures": [asdict(figure) for figure in finished.figures],
            "report": str(finished.report),
            "store": finished.store,
        }
    )
