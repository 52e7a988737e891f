"""A check of the machine: its probe, its fix, and the order in which fixes run.

Fixes run side by side, each as soon as what it needs is in place.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import ClassVar, Protocol

from testbed.errors import TestbedError

EX_UNAVAILABLE = 69
FIX_ALL = "./run testbed doctor --fix"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """What a check found: `what` in a sentence, and the command that mends it ("" where none can)."""

    name: str
    ok: bool
    what: str
    fix_command: str = ""
    required: bool = True


class CannotFix(TestbedError):
    """No program can mend this; the finding says what a person can do."""


class Check(ABC):
    """One thing a machine needs. A new check is one class in one file of `testbed/setup/checks`."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    fixable: ClassVar[bool] = False
    doing: ClassVar[str] = ""  # what `fix` does, for people: "installing …"
    estimate_s: ClassVar[float] = 1.0  # of `fix`, for the progress; measured on two cores

    @abstractmethod
    def probe(self) -> CheckFinding:
        """Look, changing nothing; fast. Never raises for what is merely absent."""

    def fix(self) -> None:
        """Put it right. Raise TestbedError when that fails. Only called where `fixable`."""
        raise CannotFix(self.probe().what)

    def good(self, what: str) -> CheckFinding:
        """Return a finding that all is well."""
        return CheckFinding(self.name, True, what)

    def bad(self, what: str, fix_command: str = "", *, required: bool = True) -> CheckFinding:
        """Return a finding that something is amiss; `fix_command` defaults to the doctor's own when it can."""
        return CheckFinding(self.name, False, what, fix_command or (FIX_ALL if self.fixable else ""), required)


class Observer(Protocol):
    """Told what happens, from several threads."""

    def begun(self, check: Check) -> None:
        """Return a fix has begun."""

    def done(self, check: Check, seconds: float) -> None:
        """Return a fix is done and its check is satisfied."""

    def failed(self, check: Check, seconds: float) -> None:
        """Return a fix has failed."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The findings after fixing, in the order of the checks, and why fixes failed, by name of check."""

    findings: tuple[CheckFinding, ...]
    failures: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Return whether everything required is in place."""
        return all(finding.ok or not finding.required for finding in self.findings)


def ordered(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks, each after what it needs. Raise ValueError for an unknown name or a circle."""
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
    """Return the named checks and all they need, directly or not."""
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
    """For each check the names of all it needs, directly or not."""
    found: dict[str, frozenset[str]] = {}
    for check in ordered(checks):
        found[check.name] = frozenset(check.needs).union(*(found[need] for need in check.needs))
    return found


def probe_all(checks: Sequence[Check]) -> tuple[CheckFinding, ...]:
    """Return all findings, the probes side by side."""
    with ThreadPoolExecutor(max_workers=len(checks) or 1) as pool:
        return tuple(pool.map(lambda check: check.probe(), checks))


def put_right(checks: Sequence[Check], found: Sequence[CheckFinding], observer: Observer) -> CheckOutcome:
    """Fix what `found` says is amiss and can be fixed; probe each check again before and after its fix.

    A check whose needs could not be put right is not tried; one failure does not stop what is
    independent of it.
    """
    state = _FixState({finding.name: finding for finding in found}, {})
    todo = [check for check in ordered(checks) if not state.findings[check.name].ok]
    running: dict[Future[None], Check] = {}
    before = ancestors(checks)
    with ThreadPoolExecutor(max_workers=len(checks) or 1) as pool:
        while todo or running:
            busy = {check.name for check in running.values()} | {check.name for check in todo}
            for check in list(todo):
                # Indirect needs, too: an engine that answers already does not mean that packages are there.
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
    finding = check.probe()  # what it needs may have been put right since
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
