"""A qualification told: for a terminal, as JSON, as a pull request's comment, as JUnit. Pure."""

from typing import Any

from results.compare.qualification import Cell, Qualification, Row
from results.compare.told import COLUMNS, JUnitCase, bold, cell, junit, line, markdown_table

EXIT = {"OK": 0, "IMPROVED": 0, "REGRESSED": 1, "NOISY": 2, "ENV-CHANGED": 2, "NO-DATA": 2}
NOTHING = "\N{EN DASH}"


def headline(found: Qualification) -> str:
    """What was held against what."""
    return f"Kafka {found.candidate} against {' and '.join(found.baselines)}"


def told_cell(one: Cell) -> str:
    """A version in a scenario: its runs by verdict."""
    if not one.ids:
        return "not run"
    return ", ".join(f"{count} {verdict}" if len(one.ids) > 1 else verdict for verdict, count in one.runs.items())


def by_version(row: Row, found: Qualification) -> list[str]:
    """A cell for each version, baselines first; where a scenario is not of a version, a dash."""
    told = {each.version: told_cell(each) for each in row.cells}
    return [told.get(version, NOTHING) for version in (*found.baselines, found.candidate)]


def lines(found: Qualification) -> list[str]:
    """A line a scenario, worst first; below it every reason, and what is worth knowing."""
    width = max((len(row.name) for row in found.rows), default=0)
    told = []
    for row in found.worst_first:
        seen = "; ".join(f"{each.version}: {told_cell(each)}" for each in row.cells)
        told.append(f"{row.said.verdict:<11}  {row.name:<{width}}  {seen}")
        told += [f"{'':13}{reason}" for reason in row.said.reasons]
        told += [f"{'':13}({note})" for note in row.said.notes]
    return told


def as_json(found: Qualification) -> dict[str, Any]:
    """One document."""
    return {
        "qualification": found.id,
        "candidate": found.candidate,
        "against": list(found.baselines),
        "profile": found.profile,
        "threshold": found.threshold,
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "complete": found.complete,
        "ended": found.ended,
        "store": found.store,
        "scenarios": [_row(row) for row in found.worst_first],
        "problems": list(found.problems),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "scenario": row.name,
        "experiment": row.experiment,
        "topology": row.topology,
        "run": row.kind,
        "verdict": row.said.verdict,
        "reasons": list(row.said.reasons),
        "notes": list(row.said.notes),
        "versions": [
            {
                "kafka": each.version,
                "runs": dict(each.runs),
                "run_ids": list(each.ids),
                "failed": {name: {"runs": bad, "of": of} for name, (bad, of) in each.failing.items()},
                "missing": each.missing or None,
            }
            for each in row.cells
        ],
        "measures": [
            {
                "against": each.comparison.baseline.rpartition(", ")[2],
                "measure": each.comparison.measure.name,
                "unit": each.comparison.measure.unit,
                "better": each.comparison.measure.better,
                "verdict": each.verdict,
                "why": each.why,
                "before": told.before,
                "after": told.after,
                "ratio": each.effect and each.effect.ratio,
                "interval": each.effect and [each.effect.low, each.effect.high],
                "p": each.effect and each.effect.p,
                "adjusted_p": each.adjusted,
                "pairs": int(told.pairs),
                "detectable": each.detectable,
            }
            for each in row.findings
            for told in [line(each, row.name)]
        ],
    }


def markdown(found: Qualification) -> str:
    """Tables for a comment: the reasons, the matrix, then every measure that was compared."""
    told = [f"### {found.verdict}: {cell(headline(found))}", ""]
    told += [f"- {cell(reason)}" for reason in found.reasons]
    versions = (*found.baselines, found.candidate)
    matrix = [
        (row.said.verdict, row.name, *by_version(row, found), "; ".join(row.said.reasons)) for row in found.worst_first
    ]
    told += ["", *markdown_table(("", "scenario", *(cell(each) for each in versions), "why"), matrix)]
    measured = [
        line(each, _against(row, found, each.comparison.baseline)) for row in found.worst_first for each in row.findings
    ]
    if measured:
        told += ["", *markdown_table(COLUMNS, [each.cells for each in measured])]
    if not found.complete:
        told += ["", f"{bold('not complete')}: {cell(found.ended)}"]
    return "\n".join(told) + "\n"


def _against(row: Row, found: Qualification, baseline: str) -> str:
    """Where there are several baselines it is said which one."""
    return row.name if len(found.baselines) == 1 else f"{row.name}, against {baseline.rpartition(', ')[2]}"


def as_junit(found: Qualification) -> str:
    """A case for each scenario."""
    cases = [
        JUnitCase(
            row.name,
            row.experiment,
            row.said.verdict,
            row.said.reasons[0] if row.said.reasons else "",
            "\n".join((*row.said.reasons, *row.said.notes, *(_runs(each) for each in row.cells if each.ids))),
        )
        for row in found.rows
    ]
    unfinished = () if found.complete else (f"not all was run: {found.ended}",)
    return junit(f"qualify {found.candidate}", cases, (*unfinished, *found.problems))


def _runs(one: Cell) -> str:
    return f"{one.version}: {told_cell(one)}: {', '.join(one.ids)}"
