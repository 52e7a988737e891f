"""Fixes of failed checks, and their progress: one block redrawn on a terminal, plain lines elsewhere."""

import logging
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Self, TextIO

from testbed.errors import TestbedError, os_error_text
from testbed.setup.check import FIX_ALL, Check, CheckFinding, CheckOutcome, ancestors, impossible, ordered, probe_all


def make_ready(checks: Sequence[Check]) -> CheckOutcome:
    """Probe, then fix each fixable problem; return the outcome. Start no fix when a required one is impossible."""
    found = probe_all(checks)
    by_name = {check.name: check for check in checks}
    lacking = [finding.name for finding in found if not finding.ok]
    fixable = [name for name in lacking if by_name[name].fixable]
    hopeless = {
        finding.name: finding.what
        for finding in found
        if not finding.ok and finding.required and {finding.name, *by_name[finding.name].needs}.isdisjoint(fixable)
    }
    if hopeless or not fixable:
        return CheckOutcome(found, hopeless)
    with FixProgress(checks, expected=fixable) as progress:
        return put_right(checks, found, progress)


def report_failures(checks: Sequence[Check], outcome: CheckOutcome) -> None:
    """Write why the machine is not ready: each required finding that is left, its reason and its remedy.

    Omit a finding that only follows from another one.
    """
    before, beyond = ancestors(checks), impossible(checks, outcome.findings)
    failed = {finding.name for finding in outcome.findings if not finding.ok and finding.required}
    for finding in outcome.findings:
        own = finding.name in outcome.failures or finding.fix_command not in ("", FIX_ALL)
        follows = finding.name in beyond or (not own and not failed.isdisjoint(before[finding.name]))
        if finding.name in failed and not follows:
            print(f"{finding.name}: {outcome.failures.get(finding.name, finding.what)}", file=sys.stderr)
            if finding.fix_command and finding.fix_command != FIX_ALL:
                print(f"  to repair it: {finding.fix_command}", file=sys.stderr)


REDRAW_S = 0.5


class FixProgress:
    """An observer of fixes. As a context manager it also shows the warnings logged meanwhile.

    `expected` are the likely fixes, for the estimate of the total time.
    """

    def __init__(self, checks: Sequence[Check], out: TextIO | None = None, expected: Sequence[str] = ()) -> None:
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._checks = {check.name: check for check in checks}
        self._lock = threading.RLock()
        self._begun_at: dict[str, float] = {}
        self._pending = set(expected)
        self._drawn = 0
        self._stop = threading.Event()
        self._painter: threading.Thread | None = None
        self._handler = _Handler(self)

    def begun(self, check: Check) -> None:
        """Show that a fix has begun."""
        with self._lock:
            self._pending.discard(check.name)
            self._begun_at[check.name] = time.monotonic()
            if not self._terminal:
                self._print(f"{check.doing}: begun (about {check.estimate_s:.0f} s)")

    def ended(self, check: Check, how: str) -> None:
        """Show that a fix is done, or has failed."""
        with self._lock:
            self._begun_at.pop(check.name, None)
            self._print(f"{check.doing}: {how}")

    def say(self, text: str) -> None:
        """Print a line above the block."""
        with self._lock:
            self._print(text)

    def __enter__(self) -> Self:
        logging.getLogger("testbed").addHandler(self._handler)
        if self._terminal:
            self._painter = threading.Thread(target=self._paint, daemon=True)
            self._painter.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        if self._painter:
            self._painter.join()
        with self._lock:
            self._erase()
        logging.getLogger("testbed").removeHandler(self._handler)

    def block(self, now: float) -> list[str]:
        """Return the lines of the block at monotonic time `now`."""
        left_s = {name: self._checks[name].estimate_s for name in self._pending}
        lines = []
        for name, begun_at in self._begun_at.items():
            check, elapsed = self._checks[name], now - begun_at
            left_s[name] = max(check.estimate_s - elapsed, 1.0)
            lines.append(f"  {check.doing:<44} {elapsed:4.0f} s of about {check.estimate_s:.0f} s")
        if not lines:
            return []
        needs = {name: check.needs for name, check in self._checks.items()}
        return [*lines, f"  {'ready in':<44} about {longest_chain_s(needs, left_s):.0f} s"]

    def _paint(self) -> None:
        while not self._stop.wait(REDRAW_S):
            with self._lock:
                self._erase()
                self._draw(self.block(time.monotonic()))

    def _print(self, text: str) -> None:
        self._erase()
        self._out.write(f"{text}\n")
        if self._terminal and not self._stop.is_set():
            self._draw(self.block(time.monotonic()))
        self._out.flush()

    def _draw(self, lines: Sequence[str]) -> None:
        width = shutil.get_terminal_size().columns - 1
        for line in lines:
            self._out.write(f"{line[:width]}\n")
        self._drawn = len(lines)
        self._out.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


def put_right(checks: Sequence[Check], found: Sequence[CheckFinding], progress: FixProgress) -> CheckOutcome:
    """Fix each fixable problem of `found`; probe each check again before and after its fix. Return the outcome.

    Fixes run in parallel; each starts as soon as its requirements are met. A check is skipped when the fix of a
    requirement failed. A failure does not stop independent checks.
    """
    fixes = _Fixes(found, progress)
    todo = [check for check in ordered(checks) if not fixes.findings[check.name].ok]
    running: dict[Future[None], Check] = {}
    before = ancestors(checks)
    with ThreadPoolExecutor(max_workers=len(checks) or 1) as pool:
        while todo or running:
            busy = {check.name for check in (*running.values(), *todo)}
            for check in list(todo):
                # Indirect requirements, too: an engine that answers already does not imply that packages are installed.
                if busy.isdisjoint(before[check.name]):
                    todo.remove(check)
                    running[pool.submit(fixes.put_right, check)] = check
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                del running[future]
                future.result()
    return CheckOutcome(tuple(fixes.findings[check.name] for check in checks), fixes.failures)


class _Fixes:
    """The findings and the failed fixes so far; each thread changes those of its own check."""

    def __init__(self, found: Sequence[CheckFinding], progress: FixProgress) -> None:
        self.findings = {finding.name: finding for finding in found}
        self.failures: dict[str, str] = {}
        self._progress = progress

    def put_right(self, check: Check) -> None:
        old = self.findings[check.name]
        needed = [self.findings[name] for name in check.needs]
        if lacking := [each.name for each in needed if not each.ok and each.required]:
            what = f"{old.what} (not tried, since this failed: {', '.join(lacking)})"
            self.findings[check.name] = replace(old, what=what)
            return
        finding = check.probe()  # another fix may have solved it since
        if not finding.ok and check.fixable:
            finding = self._fixed(check) or finding
        self.findings[check.name] = finding

    def _fixed(self, check: Check) -> CheckFinding | None:
        """Return the finding after the fix; None when the fix failed."""
        self._progress.begun(check)
        begun = time.monotonic()
        try:
            check.fix()
        except TestbedError as error:
            after, failure = None, str(error)
        except OSError as error:
            after, failure = None, os_error_text(error) or str(error)
        else:
            after = check.probe()
            failure = f"still so afterwards: {after.what}"
        done = after is not None and after.ok
        if not done:
            self.failures[check.name] = failure
        how = "done in" if done else "FAILED after"
        self._progress.ended(check, f"{how} {time.monotonic() - begun:.0f} s")
        return after


def longest_chain_s(needs: Mapping[str, tuple[str, ...]], left_s: Mapping[str, float]) -> float:
    """Return the seconds until all steps in `left_s` are done, each after those it needs; other steps take none."""

    def until(name: str) -> float:
        return left_s.get(name, 0.0) + max((until(need) for need in needs.get(name, ())), default=0.0)

    return max((until(name) for name in left_s), default=0.0)


class _Handler(logging.Handler):
    def __init__(self, progress: FixProgress) -> None:
        super().__init__(logging.WARNING)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.say(record.getMessage())
