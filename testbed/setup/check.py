"""A check of the machine: its probe, its fix, and the order in which fixes run.

Fixes run in parallel; each starts as soon as its requirements are met.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import ClassVar, Protocol

from testbed.errors import TestbedError
from testbed.setup.environment import IS_CHECKOUT

EX_UNAVAILABLE = 69
FIX_ALL = "./run testbed doctor --fix" if IS_CHECKOUT else "testbed doctor --fix"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """A check's result: the sentence `what`, and the command that fixes the problem ("" without one)."""

    name: str
    ok: bool
    what: str
    fix_command: str = ""
    required: bool = True


class CannotFix(TestbedError):
    """A problem that no program can fix; the finding says what a person can do."""


class Check(ABC):
    """One requirement of a machine. A new check is one class in one file of `testbed/setup/checks`."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    fixable: ClassVar[bool] = False
    doing: ClassVar[str] = ""  # the action of `fix` in messages: "installing …"
    estimate_s: ClassVar[float] = 1.0  # duration of `fix`, for the progress; measured on two cores

    @abstractmethod
    def probe(self) -> CheckFinding:
        """Return the finding quickly, and change nothing. A missing item is a finding, not an exception."""

    def fix(self) -> None:
        """Fix the problem. Raise TestbedError on failure. Only called where `fixable`."""
        raise CannotFix(self.probe().what)

    def good(self, what: str) -> CheckFinding:
        """Return a finding without a problem."""
        return CheckFinding(self.name, True, what)

    def bad(self, what: str, fix_command: str = "", *, required: bool = True) -> CheckFinding:
        """Return a finding of a problem; `fix_command` defaults to the doctor's own when it can fix it."""
        return CheckFinding(self.name, False, what, fix_command or (FIX_ALL if self.fixable else ""), required)


class Observer(Protocol):
    """An observer of fixes. Several threads call it."""

    def begun(self, check: Check) -> None:
        """Note that a fix has begun."""

    def done(self, check: Check, seconds: float) -> None:
        """Note that a fix is done and its check is satisfied."""

    def failed(self, check: Check, seconds: float) -> None:
        """Note that a fix has failed."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The findings after fixing, in the order of the checks, and the reasons of failed fixes, by name of check."""

    findings: tuple[CheckFinding, ...]
    failures: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Return whether every requirement is met."""
        return all(finding.ok or not finding.required for finding in self.findings)


def ordered(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks, each after its requirements. Raise ValueError for an unknown name or a cycle."""
    by_name = {check.name: check for check in checks}
    if len(by_name) != len(checks):
        raise ValueError("two checks have one name")
    placed: dict[str, Check] = {}
    rest = list(checks)
    while rest:
        ready = [check for check in rest if all(need in placed for need in check.needs)]
        if not ready:
            raise ValueError(f"needs that are unknown or go in a circle: {', '.join(c.name for c in rest)}")
        placed.update((check.name, check) for check in ready)
        rest = [check for check in rest if check.name not in placed]
    return tuple(placed.values())


def closure(checks: Sequence[Check], names: Iterable[str]) -> tuple[Check, ...]:
    """Return the named checks and all checks that they need, directly or not."""
    by_name = {check.name: check for check in checks}
    wanted: dict[str, None] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in wanted:
            wanted[name] = None
            todo += by_name[name].needs
    return tuple(check for check in ordered(checks) if check.name in wanted)


def ancestors(checks: Sequence[Check]) -> dict[str, frozenset[str]]:
    """Return for each check the names of all checks that it needs, directly or not."""
    found: dict[str, frozenset[str]] = {}
    for check in ordered(checks):
        found[check.name] = frozenset(check.needs).union(*(found[need] for need in check.needs))
    return found


def probe_all(checks: Sequence[Check]) -> tuple[CheckFinding, ...]:
    """Return all findings; the probes run in parallel."""
    with ThreadPoolExecutor(max_workers=len(checks) or 1) as pool:
        return tuple(pool.map(lambda check: check.probe(), checks))


def put_right(checks: Sequence[Check], found: Sequence[CheckFinding], observer: Observer) -> CheckOutcome:
    """Fix each fixable problem of `found`; probe each check again before and after its fix. Return the outcome.

    A check is skipped when the fix of a requirement failed. A failure does not stop independent checks.
    """
    state = _FixState({finding.name: finding for finding in found}, {})
    todo = [check for check in ordered(checks) if not state.findings[check.name].ok]
    running: dict[Future[None], Check] = {}
    before = ancestors(checks)
    with ThreadPoolExecutor(max_workers=len(checks) or 1) as pool:
        while todo or running:
            busy = {check.name for check in running.values()} | {check.name for check in todo}
            for check in list(todo):
                # Indirect requirements, too: an engine that answers already does not imply that packages are installed.
                if busy.isdisjoint(before[check.name]):
                    todo.remove(check)
                    running[pool.submit(_put_one_right, check, state, observer)] = check
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                del running[future]
                future.result()
    return CheckOutcome(tuple(state.findings[check.name] for check in checks), dict(state.failures))


class _FixState:
    def __init__(self, findings: dict[str, CheckFinding], failures: dict[str, str]) -> None:
        self.findings = findings
        self.failures = failures
        self.lock = threading.Lock()


def _put_one_right(check: Check, state: _FixState, observer: Observer) -> None:
    with state.lock:
        lacking = [n for n in check.needs if not state.findings[n].ok and state.findings[n].required]
    if lacking:
        with state.lock:
            old = state.findings[check.name]
            what = f"{old.what} (not tried, since this failed: {', '.join(lacking)})"
            state.findings[check.name] = CheckFinding(check.name, False, what, old.fix_command, old.required)
        return
    finding = check.probe()  # another fix may have solved it since
    if not finding.ok and check.fixable:
        finding = _fixed(check, finding, state, observer)
    with state.lock:
        state.findings[check.name] = finding


def _fixed(check: Check, finding: CheckFinding, state: _FixState, observer: Observer) -> CheckFinding:
    observer.begun(check)
    begun = time.monotonic()
    try:
        check.fix()
    except (TestbedError, OSError) as error:
        with state.lock:
            state.failures[check.name] = str(error)
        observer.failed(check, time.monotonic() - begun)
        return finding
    after = check.probe()
    seconds = time.monotonic() - begun
    if after.ok:
        observer.done(check, seconds)
    else:
        with state.lock:
            state.failures[check.name] = f"still so afterwards: {after.what}"
        observer.failed(check, seconds)
    return after
