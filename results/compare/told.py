"""Comparisons told: as rows of a table, as a pull request's comment, as JUnit. Pure."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from results.compare.judgement import Finding, Verdict

NOTHING = "\N{EN DASH}"
FAILURE: tuple[Verdict, ...] = ("REGRESSED",)
ERROR: tuple[Verdict, ...] = ("NOISY", "ENV-CHANGED", "NO-DATA")
COLUMNS = ("", "scenario", "measure", "before", "after", "change", "95 %", "adjusted p", "pairs", "why")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold."""


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison in words; before and after are medians over the pairs in which both sides have a value."""

    verdict: Verdict
    scenario: str
    measure: str
    before: str
    after: str
    change: str
    interval: str
    p: str
    pairs: str
    why: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As COLUMNS has them."""
        told = (self.scenario, self.measure, self.before, self.after, self.change, self.interval, self.p, self.pairs)
        return (self.verdict, *told, self.why)

    def __str__(self) -> str:
        if self.change == NOTHING:
            return f"{self.measure}: {self.why}"
        figures = f"{self.before} \N{RIGHTWARDS ARROW} {self.after} ({self.change}, {self.interval})"
        return f"{self.measure}: {figures}, adjusted p {self.p}, {self.pairs} pairs: {self.why}"


def line(finding: Finding, scenario: str) -> Line:
    """A finding in words."""
    comparison, effect = finding.comparison, finding.effect
    values = [(pair.baseline, pair.candidate) for pair in comparison.pairs]
    both = [(old, new) for old, new in values if old is not None and new is not None]
    unit = f" {comparison.measure.unit}" if comparison.measure.unit else ""
    before, after = (_median([pair[side] for pair in both]) for side in (0, 1))
    return Line(
        finding.verdict,
        scenario,
        comparison.measure.name,
        NOTHING if before is None else f"{before:.4g}{unit}",
        NOTHING if after is None else f"{after:.4g}{unit}",
        NOTHING if effect is None else change(effect.ratio),
        NOTHING if effect is None else f"{change(effect.low)} to {change(effect.high)}",
        NOTHING if finding.adjusted is None else f"{finding.adjusted:.2g}",
        str(len(both) if effect is None else effect.pairs),
        finding.why,
    )


def change(ratio: float) -> str:
    """+9.3 % of 1.093."""
    return f"{(ratio - 1) * 100:+.1f} %"


def _median(values: Sequence[float]) -> float | None:
    ordered, half = sorted(values), len(values) // 2
    if not ordered:
        return None
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table for a comment; the first column is a verdict, bold unless it is OK."""
    told = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    told += [f"| {' | '.join([bold(row[0]), *(cell(each) for each in row[1:])])} |" for row in rows]
    return told


def bold(verdict: str) -> str:
    """A verdict that is to be seen."""
    return verdict if verdict == "OK" else f"**{verdict}**"


def cell(text: str) -> str:
    """Text that a table takes as it stands."""
    for character in "\\|`*_[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.replace("<", "&lt;").replace(">", "&gt;").split())


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A case: REGRESSED fails, what cannot be said is an error of its own type, never a skip."""

    name: str
    group: str
    verdict: Verdict
    message: str
    detail: str = ""


def junit(suite: str, cases: Sequence[JUnitCase], problems: Sequence[str] = ()) -> str:
    """JUnit's XML."""
    counts = {
        "tests": str(len(cases) + len(problems)),
        "failures": str(sum(each.verdict in FAILURE for each in cases)),
        "errors": str(sum(each.verdict in ERROR for each in cases) + len(problems)),
        "skipped": "0",
    }
    root = ET.Element("testsuites", {"name": "testbed", **counts})
    inner = ET.SubElement(root, "testsuite", {"name": _fit(suite), **counts})
    for each in cases:
        made = ET.SubElement(inner, "testcase", {"name": _fit(each.name), "classname": _fit(each.group), "time": "0"})
        if each.verdict in (*FAILURE, *ERROR):
            kind = "failure" if each.verdict in FAILURE else "error"
            message = _fit(f"{each.verdict}: {each.message}")
            ET.SubElement(made, kind, {"type": each.verdict, "message": message}).text = _fit(each.detail)
        elif each.detail:
            ET.SubElement(made, "system-out").text = _fit(each.detail)
    for number, problem in enumerate(problems, 1):
        made = ET.SubElement(inner, "testcase", {"name": f"problem {number}", "classname": _fit(suite), "time": "0"})
        ET.SubElement(made, "error", {"type": "problem", "message": _fit(problem)})
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _fit(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
