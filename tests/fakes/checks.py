"""A check that needs no machine."""

import threading
from collections.abc import Callable

from testbed.errors import TestbedError
from testbed.setup.check import Check, CheckFinding


class FakeCheck(Check):
    """A check of a flag in memory: satisfied once fixed; notes what was fixed in `journal`."""

    def __init__(
        self,
        name: str,
        *needs: str,
        ok: bool = False,
        fixable: bool = True,
        required: bool = True,
        failure: str = "",
        during: Callable[[], None] = lambda: None,
        journal: list[str] | None = None,
    ) -> None:
        self.name = name  # type: ignore[misc]
        self.needs = needs  # type: ignore[misc]
        self.doing = f"making {name}" if fixable else ""  # type: ignore[misc]
        self.required = required
        self.ok = ok
        self.failure = failure
        self.during = during
        self.journal = [] if journal is None else journal
        self.lock = threading.Lock()

    def probe(self) -> CheckFinding:
        if self.ok:
            return self.good("there")
        return self.bad(f"no {self.name}", required=self.required)

    def fix(self) -> None:
        self.during()
        with self.lock:
            self.journal.append(self.name)
        if self.failure:
            raise TestbedError(self.failure)
        self.ok = True
