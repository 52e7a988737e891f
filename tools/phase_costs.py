"""The time and the CPU of each phase of a run: of the command, of the brokers, and of their agents.

./run exec python -m tools.phase_costs run kip73-many --set partitions=500

A phase begins with a line that the command prints on standard error, and ends with the next one. Every process of the
machine is read twice a second, so what a shorter process used is missing. End other containers first: theirs count too.
"""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import sysconf
from pathlib import Path
from typing import Literal

from results.render import table

Owner = Literal["command", "broker", "agent"]
OWNERS: tuple[Owner, ...] = ("command", "broker", "agent")
"""The command with its children; a JVM in a container; whatever else runs in a container."""
INTERVAL_S = 0.5
TICKS_PER_S = sysconf("SC_CLK_TCK")
_PHASE = re.compile(r" *\d+\.\d s  (.+)")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the machine: its name, its parent, its CPU seconds so far, and whether it is in a container."""

    pid: int
    parent: int
    name: str
    cpu_s: float
    contained: bool


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase: what the command said, how long it took, and the CPU seconds of each owner meanwhile."""

    what: str
    seconds: float
    cpu_s: Mapping[Owner, float]


def owners(processes: Sequence[Process], root: int) -> dict[int, Owner]:
    """Return who owns which process, by PID; processes of the machine itself are left out."""
    parents = {each.pid: each.parent for each in processes}

    def of(each: Process) -> Owner | None:
        if each.contained:
            return "broker" if each.name == "java" else "agent"
        pid = each.pid
        while pid in parents and pid != root:
            pid = parents[pid]
        return "command" if pid == root else None

    return {each.pid: owner for each in processes if (owner := of(each)) is not None}


class Costs:
    """The CPU seconds of each owner so far. A process that ended keeps what it had at its last reading."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._used: dict[int, tuple[Owner, float]] = {}
        self._before: dict[int, float] | None = None

    def read(self, processes: Sequence[Process]) -> None:
        """Add a reading. What processes had used before the first one does not count."""
        if self._before is None:
            self._before = {each.pid: each.cpu_s for each in processes}
        owned = owners(processes, self._root)
        for each in processes:
            if each.pid in owned:
                self._used[each.pid] = (owned[each.pid], each.cpu_s - self._before.get(each.pid, 0.0))

    def so_far(self) -> dict[Owner, float]:
        """Return the CPU seconds of each owner since the first reading."""
        return {owner: sum(seconds for of, seconds in self._used.values() if of == owner) for owner in OWNERS}


def running() -> Iterator[Process]:
    """Yield the processes of this machine; one that ends meanwhile is left out."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat, groups = (folder / "stat").read_text(), (folder / "cgroup").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield process(int(folder.name), stat, groups)


def process(pid: int, stat: str, groups: str) -> Process:
    """Return a process from the texts of its `stat` and `cgroup` in `/proc` (proc(5))."""
    head, _, rest = stat.rpartition(")")
    fields = rest.split()
    ticks = int(fields[11]) + int(fields[12])
    return Process(pid, int(fields[1]), head.partition("(")[2], ticks / TICKS_PER_S, "docker" in groups)


def phases(marks: Iterable[tuple[float, str, Mapping[Owner, float]]]) -> list[Phase]:
    """Return the phases between marks: seconds since the start, what begins then, and the CPU seconds so far."""
    return [
        Phase(what, until - begun, {owner: after[owner] - before[owner] for owner in OWNERS})
        for (begun, what, before), (until, _next, after) in pairwise(marks)
    ]


def measure(command: Sequence[str]) -> tuple[int, list[Phase]]:
    """Run a command; return its exit code and its phases. Its standard error is printed as well."""
    begun = time.monotonic()
    marks: list[tuple[float, str, Mapping[Owner, float]]] = []
    ended = threading.Event()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        costs, reading = Costs(child.pid), threading.Lock()

        def read() -> None:
            with reading:
                costs.read(list(running()))

        def mark(what: str) -> None:
            read()
            marks.append((time.monotonic() - begun, what, costs.so_far()))

        def watch() -> None:
            while not ended.wait(INTERVAL_S):
                read()

        watcher = threading.Thread(target=watch, daemon=True)
        mark("start")
        watcher.start()
        assert child.stderr is not None
        for line in child.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            if found := _PHASE.match(line):
                mark(found[1])
        code = child.wait()
        ended.set()
        watcher.join()
        mark("end")
    return code, phases(marks)


def shown(found: Sequence[Phase]) -> str:
    """Return the phases as a table, and their sum."""
    cpu_s = {owner: sum(each.cpu_s[owner] for each in found) for owner in OWNERS}
    whole = Phase("all", sum(each.seconds for each in found), cpu_s)
    rows = [
        (each.what, f"{each.seconds:.1f}", *(f"{each.cpu_s[owner]:.1f}" for owner in OWNERS))
        for each in (*found, whole)
    ]
    return table(("PHASE", "SECONDS", *(f"{owner.upper()} CPU s" for owner in OWNERS)), rows)


def main() -> int:
    """Measure the testbed command that the arguments name; return its exit code."""
    if not sys.argv[1:]:
        print(__doc__)
        return 64
    code, found = measure([sys.executable, "-m", "testbed.cli.main", *sys.argv[1:]])
    print(shown(found))
    return code


if __name__ == "__main__":
    sys.exit(main())
