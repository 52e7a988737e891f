"""Progress for people: one block redrawn on a terminal, plain lines anywhere else."""

import logging
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TextIO

from testbed.setup import estimates
from testbed.setup.finding import Check

REDRAW_S = 0.5


class Progress:
    """An observer of fixes. As a context manager it also shows the warnings logged meanwhile."""

    def __init__(self, checks: Sequence[Check], out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._needs = {check.name: check.needs for check in checks}
        known = estimates.measured()
        self._estimate_s = {check.name: known.get(check.name, check.estimate_s) for check in checks}
        self._lock = threading.RLock()
        self._begun_at: dict[str, float] = {}
        self._labels: dict[str, str] = {}
        self._pending: set[str] = set()
        self.durations_s: dict[str, float] = {}
        self._drawn = 0
        self._stop = threading.Event()
        self._painter: threading.Thread | None = None
        self._handler = _Handler(self)

    def expect(self, names: Sequence[str]) -> None:
        """Which fixes are likely to come, for the estimate of the whole."""
        self._pending = set(names)

    def begun(self, check: Check) -> None:
        """A fix has begun."""
        with self._lock:
            self._pending.discard(check.name)
            self._begun_at[check.name] = time.monotonic()
            self._labels[check.name] = check.doing or check.name
            if not self._terminal:
                about = f"about {self._estimate_s[check.name]:.0f} s"
                self._print(f"{self._labels[check.name]}: begun ({about})")

    def done(self, check: Check, seconds: float) -> None:
        """A fix is done."""
        self.durations_s[check.name] = seconds
        self._ended(check, f"done in {seconds:.0f} s")

    def failed(self, check: Check, seconds: float) -> None:
        """A fix has failed."""
        self._ended(check, f"FAILED after {seconds:.0f} s")

    def say(self, text: str) -> None:
        """A line of its own, above the block."""
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
        if self.durations_s:
            estimates.remember(self.durations_s)

    def block(self, now: float) -> list[str]:
        """The lines of the block at monotonic time `now`."""
        left_s = {name: self._estimate_s[name] for name in self._pending}
        lines = []
        for name, begun_at in self._begun_at.items():
            elapsed = now - begun_at
            left_s[name] = max(self._estimate_s[name] - elapsed, 1.0)
            lines.append(f"  {self._labels[name]:<44} {elapsed:4.0f} s of about {self._estimate_s[name]:.0f} s")
        if not lines:
            return []
        return [*lines, f"  {'ready in':<44} about {estimates.longest_chain_s(self._needs, left_s):.0f} s"]

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


class _Handler(logging.Handler):
    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.WARNING)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.say(record.getMessage())
