"""`testbed doctor [--fix] [--with NAME] [--json]`: the problems of this machine, and the command that fixes each."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from testbed.argument_parser import Parser
from testbed.setup.check import Check, CheckFinding, CheckOutcome, impossible, probe_all
from testbed.setup.checks.catalogue import OPTIONAL, all_checks
from testbed.setup.fix import make_ready

WITH = (
    "also check what few commands need: minio, the object store's server (5 minutes once), "
    "clock-skew, the library of that fault; repeatable"
)


def main(argv: Sequence[str] | None = None, checks: Sequence[Check] | None = None) -> int:
    """Return exit code 0 when every requirement is met, 1 otherwise."""
    parser = Parser("testbed doctor", "Check what this machine needs.")
    parser.add_argument("--fix", action="store_true", help="install what is missing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--with", dest="more", action="append", default=[], choices=sorted(OPTIONAL), help=WITH)
    given = parser.parse_args(argv)
    chosen = all_checks(dict.fromkeys(given.more)) if checks is None else tuple(checks)
    outcome = make_ready(chosen) if given.fix else CheckOutcome(probe_all(chosen), {})
    if given.json:
        print(as_json(outcome))
    else:
        follow = impossible(chosen, outcome.findings)
        shown = tuple(each for each in outcome.findings if each.ok or each.name not in follow)
        print(as_table(CheckOutcome(shown, outcome.failures)))
    return 0 if outcome.ok else 1


def as_json(outcome: CheckOutcome) -> str:
    """Return one JSON document: ok, and the findings in order."""
    return json.dumps({"ok": outcome.ok, "findings": [asdict(finding) for finding in outcome.findings]}, indent=2)


def as_table(outcome: CheckOutcome) -> str:
    """Return a line per finding; under each problem, the reason of a failed fix and the command that fixes it."""
    width = max((len(finding.name) for finding in outcome.findings), default=0)
    lines = []
    for finding in outcome.findings:
        lines.append(f"{_mark(finding):<8} {finding.name:<{width}}  {finding.what}")
        indent = " " * (width + 11)
        if finding.name in outcome.failures:
            lines += [f"{indent}{line}" for line in outcome.failures[finding.name].splitlines()]
        if not finding.ok and finding.fix_command:
            lines.append(f"{indent}to repair it: {finding.fix_command}")
    return "\n".join(lines)


def _mark(finding: CheckFinding) -> str:
    if finding.ok:
        return "ok"
    return "MISSING" if finding.required else "without"
