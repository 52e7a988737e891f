"""The process that made a resource. Its start and its boot distinguish it from a later process of the same number."""

import os
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process; `started_ticks` is its start in clock ticks since the boot that `boot_id` names."""

    pid: int
    started_ticks: int
    boot_id: str

    @classmethod
    def this_process(cls) -> "Owner":
        """Return the current process."""
        started = _started_ticks(os.getpid())
        if started is None:
            raise TestbedError(f"cannot read when this process ({os.getpid()}) started; is /proc mounted?")
        return cls(os.getpid(), started, _boot_id())

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """Return the inverse of `str`; None for any other text."""
        pid, _, rest = text.partition("@")
        ticks, _, boot = rest.partition("@")
        return cls(int(pid), int(ticks), boot) if pid.isdigit() and ticks.isdigit() and boot else None

    def of_this_boot(self) -> bool:
        """Return whether the process started since the machine's last restart."""
        return self.boot_id == _boot_id()

    def alive(self) -> bool:
        """Return whether that process still runs."""
        return self.of_this_boot() and _started_ticks(self.pid) == self.started_ticks

    def __str__(self) -> str:
        return f"{self.pid}@{self.started_ticks}@{self.boot_id}"


def is_dead(owner: str) -> bool:
    """Return whether the text of an `Owner` names no process that still runs."""
    found = Owner.parse(owner)
    return found is None or not found.alive()


def _started_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    # The second field, the command in parentheses, may itself hold blanks and parentheses. Z: dead, not reaped yet.
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="utf-8").strip()
