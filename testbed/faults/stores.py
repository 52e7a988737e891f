"""The object store's servers under faults: the state that the active faults require, and the changes to reach it."""

import shlex
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

from testbed.errors import TestbedError, UsageError
from testbed.faults import store_errors
from testbed.faults.journal import active, active_on
from testbed.faults.parameters import is_here
from testbed.faults.processes import ProcessState, ServerFault, because, look, settle_server, start
from testbed.hosts import Daemon
from testbed.objectstore.server import DATA_DIR, PID_FILE
from testbed.provision.testbed import Testbed
from testbed.suggestions import choices
from testbed.topology.host import Role
from testbed.topology.model import Topology
from testbed.wait import wait_for

READY_S = 60.0
FILLER = f"{DATA_DIR}/.filler"


@dataclass(frozen=True)
class StoreFault(ServerFault):
    """A fault of the object store's server on one host."""

    fills: ClassVar[bool] = False
    """Whether its disk is full."""
    offline: ClassVar[bool] = False
    """Whether it has lost its drives."""
    single: ClassVar[str] = ""
    """Why the fault is possible only where there is one server, as a part of a sentence; empty if it always is."""

    @property
    def rule(self) -> store_errors.Rule | None:
        """Return the requests that fail, and how; None when all pass."""
        return None

    @classmethod
    def absent_from(cls, topology: Topology) -> str:
        """See `Fault.absent_from`."""
        return "" if topology.objectstores else f"{topology.name} has no object store (role objectstore)"

    def check(self, topology: Topology) -> None:
        """See `Fault.check`."""
        super().check(topology)
        if topology.host(self.host).role is not Role.OBJECTSTORE:
            there = [host.name for host in topology.objectstores]
            stores = f"{choices(there)} do" if there else f"{topology.name} has none (role objectstore)"
            raise UsageError(f"{self.host} runs no object store, its role is {topology.host(self.host).role}; {stores}")
        servers = len(topology.objectstores)
        if self.single and servers > 1:
            raise UsageError(
                f"{self.host} is one of {servers} servers, {self.single}; allowed where there is one server"
            )

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: a server that does not run cannot get worse."""
        require_running(testbed, self.host)
        return self

    def settle(self, testbed: Testbed) -> None:
        """See `Fault.settle`."""
        settle(testbed, self.host)

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`: the server runs again, and is ready unless another fault prevents it.

        Of several servers each then serves what came without this one. The server's own report that it is ready does
        not prove this: with its own drives alone it answers that there is no such object.
        """
        store, last = testbed.objectstore, not active(testbed.name, StoreFault)
        marked = last and store.mark(without=self.host)
        super().heal(testbed)
        if not last:
            return
        store.wait_ready(timeout_s=READY_S)
        if marked:
            what = f"each server of the object store to serve an object that came without {self.host}"
            wait_for(store.unmarked, lambda found: not found, READY_S, 0.2, what)
            store.remove_mark()
        if self.fills or self.offline:
            # The server checks its drives once a second.
            what = f"the object store to take an object after {self.kind}"
            wait_for(store.refusal, lambda why: not why, READY_S, 0.2, what)


def require_running(testbed: Testbed, host: str) -> ProcessState:
    """Return the server's process on `host`. Raise `TestbedError` when it does not run."""
    seen = look(testbed.objectstore.server(host))
    if seen is None:
        raise TestbedError(f"MinIO on {host} does not run{because(testbed, host, StoreFault)}")
    return seen


def settle(testbed: Testbed, host: str) -> None:
    """Bring the server on `host`, its disk and its drives into the state that topology and active faults require."""
    faults = active_on(testbed, host, StoreFault)
    server = testbed.objectstore.server(host)
    _settle_filler(server, any(fault.fills for fault in faults))
    _settle_drives(server, offline=any(fault.offline for fault in faults))
    if is_here(testbed.topology, host):
        store_errors.settle(testbed, host, [fault.rule for fault in faults if fault.rule])
    settle_server(server, PID_FILE, faults, partial(start, server))


def available(server: Daemon) -> tuple[int, int]:
    """Return the free bytes of the server's disk, and its size in bytes."""
    columns = server.host.run(["df", "--output=avail,size", "-B1", DATA_DIR]).stdout.splitlines()[-1].split()
    return int(columns[0]), int(columns[1])


def left_when_full(size_bytes: int) -> int:
    """Return the free bytes of a full disk: too few for MinIO, which needs 1 %, but enough to delete objects."""
    return min(4 * 2**20, size_bytes // 200)


def _settle_filler(server: Daemon, wanted: bool) -> None:
    if not wanted:
        server.host.run(["rm", "-f", FILLER])
        return
    free, size = available(server)
    more = free - left_when_full(size)
    if more > 0:
        there = server.host.run(f"stat -c %s {FILLER} 2>/dev/null || echo 0").stdout
        server.host.run(["fallocate", "-o", there.strip(), "-l", str(more), FILLER])


def _settle_drives(server: Daemon, *, offline: bool) -> None:
    """Rename the file without which MinIO does not recognize a drive, or rename it back."""
    there, gone = "format.json", "format.json.gone"
    old, new = (there, gone) if offline else (gone, there)
    script = f"for d in {DATA_DIR}/d*/.minio.sys; do if [ -e $d/{old} ]; then mv $d/{old} $d/{new}; fi; done"
    server.host.run(["sh", "-c", script])


def states(server: Daemon, over_us: int, looks: int = 20) -> str:
    """Return the states of the server's process, one letter each, at `looks` times over so many microseconds."""
    script = (
        f"p=$(cat {PID_FILE}); for i in $(seq {looks}); do "
        f"sed 's/.*) //' /proc/$p/stat | cut -c1; sleep {over_us / 1e6 / looks}; done"
    )
    return "".join(server.host.run(f"sh -c {shlex.quote(script)}", check=False).stdout.split())
