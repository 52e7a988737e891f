"""A night told: for a terminal, as JSON, as a pull request's comment, as JUnit. Pure."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from results.nights.judging import iso
from results.nights.scenarios import Line, Scenario, worst

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold."""
NOTHING = "\N{EN DASH}"


def lines(found: Sequence[Scenario]) -> list[str]:
    """A line a scenario; below it one for each of its series that is neither OK nor without data, and for each change
    that nobody has acknowledged."""
    width = max((len(each.name) for each in found), default=0)
    told = []
    for each in found:
        told.append(f"{each.verdict:<11}  {each.name:<{width}}  {summary(each)}".rstrip())
        for line in each.lines:
            if line.tonight is not None:
                told.append(f"{'':13}{line.about.metric} [{line.about.series}]: {change_words(line)}")
        told += [f"{'':13}{words}" for line in each.lines for words in open_words(line)]
    return told


def summary(each: Scenario) -> str:
    """A scenario in one line: how many series, or which of them and why."""
    if each.verdict == "OK":
        return f"{len(each.lines)} series, Kafka {each.kafka}"
    metrics = [line.about.metric for line in each.lines if line.verdict == each.verdict]
    shown = ", ".join(metrics[:3]) + (f" and {len(metrics) - 3} more" if len(metrics) > 3 else "")
    return ": ".join(part for part in (shown, each.why) if part)


def change_words(line: Line) -> str:
    """Before, after, interval, adjusted p, runs, first bad and last good run."""
    reported = line.tonight
    if reported is None:
        return ""
    change = reported.change
    effect = f" ({change.effect:+.1%}, {interval(line)})" if change.effect is not None else ""
    return (
        f"{change.before:.4g} → {change.after:.4g} {line.about.unit}{effect}, p {change.chance:.2g}, "
        f"{line.said.runs} runs; first bad {reported.first_bad}, last good {reported.last_good}"
    )


def interval(line: Line) -> str:
    """The effect's 95 % interval."""
    span = line.tonight.change.interval if line.tonight is not None else None
    return NOTHING if span is None else f"{span[0]:+.1%} to {span[1]:+.1%}"


def open_words(line: Line) -> list[str]:
    """A line for each earlier change that waits to be acknowledged."""
    newest = line.tonight
    return [
        f"{line.about.metric} [{line.about.series}] was reported before, since {one.first_bad}, and is not "
        f"acknowledged: testbed results ack {line.about.series} --reason …"
        for one in line.open
        if newest is None or one.first_bad != newest.first_bad
    ]


def as_json(store: str, found: Sequence[Scenario], problems: Sequence[str], ingested: int) -> dict[str, Any]:
    """One document."""
    return {
        "store": store,
        "verdict": worst(found, problems),
        "newest": iso(max(each.newest for each in found)) if found else None,
        "ingested": ingested,
        "scenarios": [_scenario(each) for each in found],
        "problems": list(problems),
    }


def _scenario(each: Scenario) -> dict[str, Any]:
    return {
        "scenario": each.id,
        "name": each.name,
        "experiment": each.experiment,
        "parameters": dict(each.parameters),
        "environment": dict(each.environment),
        "kafka": each.kafka,
        "run": each.run_id,
        "newest": iso(each.newest),
        "verdict": each.verdict,
        "why": each.why,
        "series": [_series(line) for line in each.lines],
    }


def _series(line: Line) -> dict[str, Any]:
    reported = line.tonight
    change = reported.change if reported is not None else None
    return {
        "series": line.about.series,
        "metric": line.about.metric,
        "unit": line.about.unit,
        "better": line.about.better,
        "verdict": line.verdict,
        "why": line.why,
        "runs": line.said.runs,
        "all_runs": line.about.runs,
        "chance": line.said.chance,
        "detectable": line.said.detectable,
        "kind": change and change.kind,
        "before": change and change.before,
        "after": change and change.after,
        "effect": change and change.effect,
        "interval": list(change.interval) if change and change.interval else None,
        "p": change and change.chance,
        "first_bad": reported and reported.first_bad,
        "last_good": reported and reported.last_good,
        "open": [asdict(one) for one in line.open],
    }


def markdown(found: Sequence[Scenario], problems: Sequence[str]) -> str:
    """Tables for a pull request's comment: scenarios, then every change of tonight."""
    told = [
        f"### {worst(found, problems)}",
        "",
        "| verdict | scenario | Kafka | series | why |",
        "|---|---|---|---|---|",
    ]
    told += [
        f"| {_bold(each.verdict)} | {_cell(each.name)} | {_cell(each.kafka)} | {len(each.lines)} "
        f"| {_cell(summary(each) if each.verdict != 'OK' else '')} |"
        for each in found
    ]
    changes = [(each, line) for each in found for line in each.lines if line.tonight is not None]
    if changes:
        told += [
            "",
            "| | scenario | metric | before | after | change | 95 % | adjusted p | runs | first bad | last good |",
        ]
        told.append("|---|---|---|---|---|---|---|---|---|---|---|")
        told += [_change_row(each, line) for each, line in changes]
    told += [f"\n**Problem:** {_cell(problem)}" for problem in problems]
    return "\n".join(told) + "\n"


def _change_row(each: Scenario, line: Line) -> str:
    reported = line.tonight
    assert reported is not None
    change = reported.change
    effect = NOTHING if change.effect is None else f"{change.effect:+.1%}"
    cells = (
        _bold(line.verdict),
        _cell(each.name),
        f"{_cell(line.about.metric)}",
        f"{change.before:.4g} {_cell(line.about.unit)}",
        f"{change.after:.4g}",
        effect,
        interval(line),
        f"{change.chance:.2g}",
        str(line.said.runs),
        f"`{reported.first_bad}`",
        f"`{reported.last_good}`",
    )
    return f"| {' | '.join(cells)} |"


def _bold(verdict: str) -> str:
    return verdict if verdict == "OK" else f"**{verdict}**"


def _cell(text: str) -> str:
    for character in "\\|`*_<>[]":
        text = text.replace(
            character, f"\\{character}" if character not in "<>" else {"<": "&lt;", ">": "&gt;"}[character]
        )
    return " ".join(text.split())


def junit(found: Sequence[Scenario], problems: Sequence[str]) -> str:
    """A case for each scenario: REGRESSED fails, what cannot be said is an error of its own type, never a skip."""
    bad = [each for each in found if each.verdict == "REGRESSED"]
    open_ones = [each for each in found if each.verdict in ("NOISY", "ENV-CHANGED", "NO-DATA")]
    counts = {
        "tests": str(len(found) + len(problems)),
        "failures": str(len(bad)),
        "errors": str(len(open_ones) + len(problems)),
        "skipped": "0",
    }
    root = ET.Element("testsuites", {"name": "testbed", **counts})
    inner = ET.SubElement(root, "testsuite", {"name": "night", **counts})
    for each in found:
        case = ET.SubElement(
            inner, "testcase", {"name": _fit(each.name), "classname": _fit(each.experiment), "time": "0"}
        )
        if each.verdict not in ("OK", "IMPROVED"):
            kind = "failure" if each.verdict == "REGRESSED" else "error"
            message = _fit(f"{each.verdict}: {summary(each)}")
            detail = "\n".join(
                f"{line.about.metric}: {line.verdict} {change_words(line) or line.why}" for line in each.lines
            )
            ET.SubElement(case, kind, {"type": each.verdict, "message": message}).text = _fit(detail)
        ET.SubElement(case, "system-out").text = _fit(f"{each.verdict} run {each.run_id} Kafka {each.kafka}")
    for number, problem in enumerate(problems, 1):
        case = ET.SubElement(inner, "testcase", {"name": f"problem {number}", "classname": "night", "time": "0"})
        ET.SubElement(case, "error", {"type": "problem", "message": _fit(problem)})
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _fit(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
