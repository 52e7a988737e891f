"""A suite's outcome as JUnit: what is inconclusive is an error of its own type, never a skip, which reads as well."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from testbed.suites.outcome import CaseOutcome

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold."""


def junit(suite: str, profile: str, outcomes: Sequence[CaseOutcome], problems: Sequence[str] = ()) -> str:
    """The document. `problems` are of the suite as a whole, and fail it."""
    fails = sum(outcome.ending == "fail" for outcome in outcomes)
    errors = sum(outcome.ending in ("inconclusive", "not done") for outcome in outcomes)
    counts = {
        "tests": str(len(outcomes) + len(problems)),
        "failures": str(fails),
        "errors": str(errors + len(problems)),
        "skipped": "0",
        "time": f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    }
    root = ET.Element("testsuites", {"name": "testbed", **counts})
    inner = ET.SubElement(root, "testsuite", {"name": f"{suite}.{profile}", **counts})
    for outcome in outcomes:
        case = ET.SubElement(
            inner,
            "testcase",
            {"name": outcome.case, "classname": f"{suite}.{outcome.experiment}", "time": f"{outcome.seconds:.3f}"},
        )
        if outcome.ending == "pass":
            pass
        elif outcome.ending == "fail":
            _element(case, "failure", "fail", outcome.why)
        else:
            _element(case, "error", outcome.ending, outcome.why)
        if outcome.run_id or outcome.evidence:
            said = [f"run again, as only the machine disturbed {run}" for run in outcome.disturbed]
            said += [f"run {outcome.run_id}"] if outcome.run_id else []
            said += [f"evidence {outcome.evidence}"] if outcome.evidence else []
            ET.SubElement(case, "system-out").text = _fit("\n".join(said))
    for number, problem in enumerate(problems, 1):
        case = ET.SubElement(inner, "testcase", {"name": f"problem {number}", "classname": suite, "time": "0"})
        _element(case, "error", "suite", problem)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _element(case: ET.Element, kind: str, type_name: str, why: str) -> None:
    first = why.splitlines()[0] if why else type_name
    ET.SubElement(case, kind, {"type": type_name, "message": _fit(f"{type_name}: {first}")}).text = _fit(why)


def _fit(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
