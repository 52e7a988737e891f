"""Bringing a machine into the state that checks ask for, told to a person as it goes."""

import sys
from collections.abc import Sequence
from typing import TextIO

from testbed.setup.finding import FIX_ALL, Check, Finding
from testbed.setup.graph import Outcome, probe_all, put_right
from testbed.setup.progress import Progress


def make_ready(checks: Sequence[Check], out: TextIO | None = None) -> Outcome:
    """Probe, then fix what can be fixed. Nothing is begun when something required can never be fixed."""
    out = out or sys.stderr
    found = probe_all(checks)
    hopeless = [
        finding for finding in found if not finding.ok and finding.required and _hopeless(finding, checks, found)
    ]
    if hopeless:
        return Outcome(found, {finding.name: finding.what for finding in hopeless})
    lacking = [finding.name for finding in found if not finding.ok]
    if not any(check.name in lacking and check.fixable for check in checks):
        return Outcome(found, {})
    with Progress(checks, out) as progress:
        progress.expect([check.name for check in checks if check.name in lacking and check.fixable])
        return put_right(checks, found, progress)


def tell_failures(outcome: Outcome, out: TextIO | None = None) -> None:
    """Why the machine is not ready: each required finding that is left, with its reason and its remedy."""
    out = out or sys.stderr
    for finding in outcome.findings:
        if not finding.ok and finding.required:
            why = outcome.failures.get(finding.name, finding.what)
            out.write(f"{finding.name}: {why}\n")
            if finding.fix_command and finding.fix_command != FIX_ALL:
                out.write(f"  to mend it: {finding.fix_command}\n")


def _hopeless(finding: Finding, checks: Sequence[Check], found: Sequence[Finding]) -> bool:
    """Not fixable itself, and nothing it needs is about to be fixed."""
    by_name = {check.name: check for check in checks}
    lacking = {f.name for f in found if not f.ok}
    check = by_name[finding.name]
    return not check.fixable and not any(need in lacking and by_name[need].fixable for need in check.needs)
