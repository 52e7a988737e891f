"""Who made a thing: a process, told apart from a later one with the same number by its start time."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Owner:
    """A process; `started` is its start time in clock ticks since boot, together with the boot's id."""

    pid: int
    started: str

    @classmethod
    def me(cls) -> "Owner":
        """This process."""
        return cls(os.getpid(), _start(os.getpid()) or "")

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """The inverse of `str`; None when the text is none of ours."""
        pid, _, started = text.partition("@")
        return cls(int(pid), started) if pid.isdigit() and started else None

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return bool(self.started) and _start(self.pid) == self.started

    def __str__(self) -> str:
        return f"{self.pid}@{self.started}"


def _start(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the command's name may hold spaces and brackets
    return None if fields[0] in "ZX" else f"{fields[19]}.{boot[:8]}"
