"""A check of the machine: its probe, its fix, and the checks that it needs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

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
    doing: ClassVar[str] = ""  # the action of `fix` in messages: "installing …"; empty where no program can fix it
    estimate_s: ClassVar[float] = 1.0  # duration of `fix`, for the progress; measured on two cores

    @property
    def fixable(self) -> bool:
        """Return whether a program can fix the problem."""
        return bool(self.doing)

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


def ancestors(checks: Sequence[Check]) -> dict[str, frozenset[str]]:
    """Return for each check the names of all checks that it needs, directly or not."""
    found: dict[str, frozenset[str]] = {}
    for check in ordered(checks):
        found[check.name] = frozenset(check.needs).union(*(found[need] for need in check.needs))
    return found


def impossible(checks: Sequence[Check], findings: Sequence[CheckFinding]) -> frozenset[str]:
    """Return the checks that need something that this machine lacks and no program can fix, such as Linux."""
    failed = {finding.name for finding in findings if not finding.ok and finding.required}
    causes = {
        check.name for check in checks if check.name in failed and not check.fixable and failed.isdisjoint(check.needs)
    }
    return frozenset(name for name, before in ancestors(checks).items() if not before.isdisjoint(causes))


def closure(checks: Sequence[Check], names: Sequence[str]) -> tuple[Check, ...]:
    """Return the named checks and all checks that they need, directly or not."""
    before = ancestors(checks)
    wanted = {*names}.union(*(before[name] for name in names))
    return tuple(check for check in ordered(checks) if check.name in wanted)


def probe_all(checks: Sequence[Check]) -> tuple[CheckFinding, ...]:
    """Return all findings; the probes run in parallel."""
    with ThreadPoolExecutor(max_workers=len(checks) or 1) as pool:
        return tuple(pool.map(lambda check: check.probe(), checks))
