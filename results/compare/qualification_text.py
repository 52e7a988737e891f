"""A qualification as text for a terminal, JSON, Markdown and JUnit. Pure."""

from dataclasses import asdict
from typing import Any

from results.compare.log_lines import LOG_LINES
from results.compare.qualification import TOGETHER, Qualification, ScenarioQualification
from results.compare.render import COLUMNS, comparison_document, comparison_row
from results.compare.scenario_judgement import VersionResult
from results.render import NOTHING, JUnitCase, bold, escaped, junit, markdown_table


def headline(found: Qualification) -> str:
    """Return what was held against what."""
    return f"Kafka {found.candidate} against {' and '.join(found.baselines)}"


def cell_text(one: VersionResult) -> str:
    """Return the cell of a version in a scenario: its runs by verdict, and those that Kafka kept from their end."""
    counts: list[tuple[str, int]] = [*one.runs.items()]
    counts += [("without an end", len(one.stuck))] if one.stuck else []
    return ", ".join(f"{count} {name}" if one.tried > 1 else name for name, count in counts) or "not run"


def by_version(row: ScenarioQualification, found: Qualification) -> list[str]:
    """Return a cell for each version, baselines first; where a scenario is not of a version, a dash."""
    cells = {each.version: cell_text(each) for each in row.cells}
    return [cells.get(version, NOTHING) for version in (*found.baselines, found.candidate)]


def lines(found: Qualification) -> list[str]:
    """Return a line a scenario, worst first; below it every reason, and what is worth knowing; then new log lines."""
    width = max((len(row.name) for row in found.rows), default=0)
    rows = []
    for row in found.worst_first:
        seen = "; ".join(f"{each.version}: {cell_text(each)}" for each in row.cells)
        rows.append(f"{row.said.verdict:<11}  {row.name:<{width}}  {seen}")
        rows += [f"{'':13}{reason}" for reason in row.said.reasons]
        rows += [f"{'':13}({note})" for note in row.said.notes]
    rows += [f"{each.verdict:<11}  {TOGETHER:<{width}}  {each}" for each in found.together]
    return rows + [f"{each.verdict:<11}  {LOG_LINES:<{width}}  {each}" for each in found.log_lines]


def as_json(found: Qualification) -> dict[str, Any]:
    """Return one document."""
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
        "command": found.command,
        "scenarios": [_row(row) for row in found.worst_first],
        "log_lines": [asdict(each) for each in found.log_lines],
        "problems": [],  # always; as in the documents of `compare` and `nightly`
    }


def _row(row: ScenarioQualification) -> dict[str, Any]:
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
                "unended": {"runs": each.unended[0], "of": each.unended[1], "not_stored": list(each.stuck)},
                "inconclusive": {name: {"runs": runs, "why": why} for name, (runs, why) in each.doubts.items()},
            }
            for each in row.cells
        ],
        "measures": [
            {
                "against": each.comparison.baseline.rpartition(", ")[2],
                "pairs": int(comparison_row(each, row.name).pairs),
                **comparison_document(each),
            }
            for each in row.findings
        ],
    }


def markdown(found: Qualification) -> str:
    """Return a comment: the reasons, the matrix, every measure that was compared, log lines that chance explains."""
    rows = [f"### {found.verdict}: {escaped(headline(found))}", ""]
    rows += [f"- {escaped(reason)}" for reason in found.reasons]
    versions = (*found.baselines, found.candidate)
    matrix = [
        (row.said.verdict, row.name, *by_version(row, found), "; ".join(row.said.reasons)) for row in found.worst_first
    ]
    rows += ["", *markdown_table(("", "scenario", *(escaped(each) for each in versions), "why"), matrix)]
    measured = [
        comparison_row(each, _against(row, found, each.comparison.baseline))
        for row in found.worst_first
        for each in row.findings
    ]
    if measured:
        rows += ["", *markdown_table(COLUMNS, [each.cells for each in measured])]
    by_chance = [each for each in found.log_lines if each.verdict == "OK"]
    rows += [""] * bool(by_chance) + [f"- {LOG_LINES}, explained by chance: {escaped(str(each))}" for each in by_chance]
    if not found.complete:
        rows += ["", f"{bold('not complete')}: {escaped(found.ended)}"]
    return "\n".join(rows) + "\n"


def _against(row: ScenarioQualification, found: Qualification, baseline: str) -> str:
    """Return the name of a scenario; where there are several baselines, also against which one."""
    return row.name if len(found.baselines) == 1 else f"{row.name}, against {baseline.rpartition(', ')[2]}"


def as_junit(found: Qualification) -> str:
    """Return a case for each scenario, and for each new log line."""
    cases = [
        JUnitCase.of_verdict(
            row.name,
            row.experiment,
            row.said.verdict,
            row.said.reasons[0] if row.said.reasons else "",
            "\n".join((*row.said.reasons, *row.said.notes, *(_version_runs(each) for each in row.cells if each.tried))),
        )
        for row in found.rows
    ]
    cases += [
        JUnitCase.of_verdict(
            f"against {each.counts.baseline}", TOGETHER, each.verdict, str(each), "\n".join(each.where)
        )
        for each in found.together
    ]
    cases += [each.as_case(LOG_LINES) for each in found.log_lines]
    unfinished = () if found.complete else (f"not all was run: {found.ended}",)
    return junit(f"qualify {found.candidate}", cases, unfinished)


def _version_runs(one: VersionResult) -> str:
    return f"{one.version}: {cell_text(one)}: {', '.join((*one.ids, *one.stuck))}"
