"""Fixes of failed checks, and their progress: one block redrawn on a terminal, plain lines elsewhere."""

import logging
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, TextIO

from testbed.setup.check import FIX_ALL, Check, CheckFinding, CheckOutcome, probe_all, put_right


def make_ready(checks: Sequence[Check], out: TextIO | None = None) -> CheckOutcome:
    """Probe, then fix each fixable problem; return the outcome. Start no fix when a required one is impossible."""
    out = out or sys.stderr
    found = probe_all(checks)
    hopeless = [
        finding for finding in found if not finding.ok and finding.required and _hopeless(finding, checks, found)
    ]
    if hopeless:
        return CheckOutcome(found, {finding.name: finding.what for finding in hopeless})
    lacking = [finding.name for finding in found if not finding.ok]
    if not any(check.name in lacking and check.fixable for check in checks):
        return CheckOutcome(found, {})
    with FixProgress(checks, out) as progress:
        progress.expect([check.name for check in checks if check.name in lacking and check.fixable])
        return put_right(checks, found, progress)


def report_failures(outcome: CheckOutcome, out: TextIO | None = None) -> None:
    """Write why the machine is not ready: each required finding that is left, its reason and its remedy."""
    out = out or sys.stderr
    for finding in outcome.findings:
        if not finding.ok and finding.required:
            why = outcome.failures.get(finding.name, finding.what)
            out.write(f"{finding.name}: {why}\n")
            if finding.fix_command and finding.fix_command != FIX_ALL:
                out.write(f"  to mend it: {finding.fix_command}\n")


def _hopeless(finding: CheckFinding, checks: Sequence[Check], found: Sequence[CheckFinding]) -> bool:
    """Return whether neither it nor a requirement of it can be fixed."""
    by_name = {check.name: check for check in checks}
    lacking = {f.name for f in found if not f.ok}
    check = by_name[finding.name]
    return not check.fixable and not any(need in lacking and by_name[need].fixable for need in check.needs)


REDRAW_S = 0.5


class FixProgress:
    """An observer of fixes. As a context manager it also shows the warnings logged meanwhile."""

    def __init__(self, checks: Sequence[Check], out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._needs = {check.name: check.needs for check in checks}
        self._estimate_s = {check.name: check.estimate_s for check in checks}
        self._lock = threading.RLock()
        self._begun_at: dict[str, float] = {}
        self._labels: dict[str, str] = {}
        self._pending: set[str] = set()
        self._drawn = 0
        self._stop = threading.Event()
        self._painter: threading.Thread | None = None
        self._handler = _Handler(self)

    def expect(self, names: Sequence[str]) -> None:
        """Record the likely fixes, for the estimate of the total time."""
        self._pending = set(names)

    def begun(self, check: Check) -> None:
        """Show that a fix has begun."""
        with self._lock:
            self._pending.discard(check.name)
            self._begun_at[check.name] = time.monotonic()
            self._labels[check.name] = check.doing or check.name
            if not self._terminal:
                about = f"about {self._estimate_s[check.name]:.0f} s"
                self._print(f"{self._labels[check.name]}: begun ({about})")

    def done(self, check: Check, seconds: float) -> None:
        """Show that a fix is done."""
        self._ended(check, f"done in {seconds:.0f} s")

    def failed(self, check: Check, seconds: float) -> None:
        """Show that a fix has failed."""
        self._ended(check, f"FAILED after {seconds:.0f} s")

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._painter:
            self._painter.join()
        with self._lock:
            self._erase()
        logging.getLogger("testbed").removeHandler(self._handler)

    def block(self, now: float) -> list[str]:
        """Return the lines of the block at monotonic time `now`."""
        left_s = {name: self._estimate_s[name] for name in self._pending}
        lines = []
        for name, begun_at in self._begun_at.items():
            elapsed = now - begun_at
            left_s[name] = max(self._estimate_s[name] - elapsed, 1.0)
            lines.append(f"  {self._labels[name]:<44} {elapsed:4.0f} s of about {self._estimate_s[name]:.0f} s")
        if not lines:
            return []
        return [*lines, f"  {'ready in':<44} about {longest_chain_s(self._needs, left_s):.0f} s"]

    def _ended(self, check: Check, how: str) -> None:
        with self._lock:
            self._begun_at.pop(check.name, None)
            self._print(f"{check.doing or check.name}: {how}")

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
