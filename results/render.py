"""Renderers of results: terminal table, Markdown table, JUnit XML, JSON document.

A table for a pipe has one line a row, no colour and no lines, so that `grep` and `awk` can read it. On a terminal the
columns are fitted to its width.
"""

import dataclasses
import io
import json
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from results.contract.untrusted import visible
from results.verdicts import EXIT, known

NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold."""
_UNLIMITED = 100_000


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return columns for standard output, each as wide as its widest cell; the last one is not padded."""
    # Rich takes a twentieth of a second to import; most commands print no table.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in header:
        made.add_column(Text(name), no_wrap=not terminal, overflow="fold")
    for row in rows:
        shown = [visible(str(each)) for each in row]
        made.add_row(*(Text(each if terminal else " ".join(each.splitlines())) for each in shown))
    text = io.StringIO()
    width = shutil.get_terminal_size().columns if terminal else _UNLIMITED
    Console(file=text, width=width, color_system=None, legacy_windows=False).print(made)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def document(value: Any) -> str:
    """Return one JSON document; dataclasses become objects, paths become text."""
    return json.dumps(value, indent=2, sort_keys=False, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


class Code(str):
    """A cell of a Markdown table that is set as code."""


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table. The first cell of a row is a verdict, which is bold unless it is OK."""
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join([bold(row[0]), *(_markdown_cell(each) for each in row[1:])])} |" for row in rows]
    return lines


def _markdown_cell(text: str) -> str:
    return f"`{text}`" if isinstance(text, Code) else escaped(text)


def bold(verdict: str) -> str:
    """Return a verdict in Markdown, bold unless it is OK."""
    return verdict if verdict == "OK" else f"**{verdict}**"


def escaped(text: str) -> str:
    """Return text in which Markdown finds no markup, on one line."""
    for character in "\\|`*_[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.replace("<", "&lt;").replace(">", "&gt;").split())


Outcome = Literal["pass", "failure", "error"]
"""What became of a case. What cannot be judged is an error of its own type, never a skip, which reads as well."""


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A test case. `kind` is the type of its failure or error; `message` is one line, `detail` all there is."""

    name: str
    group: str
    outcome: Outcome = "pass"
    kind: str = ""
    message: str = ""
    detail: str = ""
    output: str = ""
    seconds: float = 0.0

    @classmethod
    def of_verdict(
        cls, name: str, group: str, verdict: str, message: str, detail: str, output: str = ""
    ) -> "JUnitCase":
        """Return the case of a comparison's or a night's verdict: what has exit code 1 fails, and 2 is an error."""
        code = EXIT[known(verdict)]
        if code == 0:
            return cls(name, group, output=output or detail)
        outcome: Outcome = "failure" if code == 1 else "error"
        first = message.partition("\n")[0]  # the end of a broker's log follows
        return cls(name, group, outcome, verdict, f"{verdict}: {first}", detail, output)


def junit(suite: str, cases: Sequence[JUnitCase], problems: Sequence[str] = (), problem_kind: str = "problem") -> str:
    """Return JUnit's XML. Each problem of the suite as a whole is an error in a case of its own."""
    every = [
        *cases,
        *(
            JUnitCase(f"problem {number}", suite, "error", problem_kind, problem.partition("\n")[0], problem)
            for number, problem in enumerate(problems, 1)
        ),
    ]
    counts = {
        "tests": str(len(every)),
        "failures": str(sum(case.outcome == "failure" for case in every)),
        "errors": str(sum(case.outcome == "error" for case in every)),
        "skipped": "0",
        "time": _time(sum(case.seconds for case in every)),
    }
    root = ET.Element("testsuites", {"name": "testbed", **counts})
    inner = ET.SubElement(root, "testsuite", {"name": _valid(suite), **counts})
    for case in every:
        head = {"name": _valid(case.name), "classname": _valid(case.group), "time": _time(case.seconds)}
        element = ET.SubElement(inner, "testcase", head)
        if case.outcome != "pass":
            attributes = {"type": case.kind, "message": _valid(case.message)}
            ET.SubElement(element, case.outcome, attributes).text = _valid(case.detail)
        if case.output:
            ET.SubElement(element, "system-out").text = _valid(case.output)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _valid(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
