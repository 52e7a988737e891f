"""The active faults of one testbed: apply, list and heal them, also the faults of dead processes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager

from testbed.errors import TestbedError, UsageError
from testbed.faults.catalogue.client_stampede import settle as settle_stampede
from testbed.faults.catalogue.cpu_limit import settle as settle_cpu
from testbed.faults.catalogue.memory_limit import settle as settle_memory
from testbed.faults.disks import settle as settle_disk
from testbed.faults.fault import Fault, FaultDidNotFire
from testbed.faults.journal import FaultEntry, FaultJournal
from testbed.faults.network import NetworkFault, active_faults, require_on_machines
from testbed.faults.network import settle as settle_network
from testbed.faults.parameters import is_here
from testbed.faults.parse import as_text
from testbed.faults.processes import ProcessFault, start_kafka, stop_kafka
from testbed.faults.processes import settle as settle_process
from testbed.faults.stores import settle as settle_store
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.provision.machine import MachineLacks
from testbed.provision.testbed import Testbed
from testbed.topology.host import Role
from testbed.wait import WaitTimeout, wait_for

_LOOK_S = 0.1
_Problems = list[tuple[str, TestbedError]]
SERVING_S = 90.0


class Faults:
    """The active faults of a testbed that is up. A lock orders calls from several threads and processes.

    This process owns its faults, and others may heal them once it is dead. With `by_hand` faults have no owner and
    stay until they are cleared.
    """

    def __init__(self, testbed: Testbed, *, by_hand: bool = False) -> None:
        self._testbed = testbed
        self._owner = None if by_hand else Owner.this_process()
        self._journal = FaultJournal(testbed.name)

    def add(self, fault: Fault) -> int:
        """Apply a fault, verify its effect, and return its id.

        Raise `UsageError` when this testbed cannot have it, `MachineLacks` when its machine cannot, `FaultDidNotFire`
        if its effect cannot be verified in time, and `TestbedError` for anything else; after any of these the fault is
        healed.
        """
        fault.check(self._testbed.topology)
        require_on_machines(fault, self._testbed)
        if missing := fault.lacking_in(self._testbed):
            raise MachineLacks(f"{as_text(fault)}: the machine cannot have it: {missing}")
        with self._lock():
            entry = self._journal.add(fault.prepare(self._testbed), self._owner)
            try:
                self._put_in(entry.fault)
            except BaseException as error:
                # Also on Ctrl-C. After a kill -9 `gc` and the next run heal the fault in the entry.
                try:
                    self._heal([entry])
                except TestbedError as another:
                    first = str(error) or "interrupted"
                    raise TestbedError(f"{first}; and it could not be healed: {another}") from error
                raise
        return entry.id

    def list(self) -> tuple[FaultEntry, ...]:
        """Return every fault that is not healed, oldest first."""
        return self._journal.entries()

    def clear(self, entry_id: int | None = None) -> tuple[FaultEntry, ...]:
        """Heal one fault, or all except those of other live processes; return the healed ones.

        Waits for the brokers unless another fault may keep them fenced. Raise `UsageError` for an unknown id, and
        `TestbedError` if a heal fails; the entry then stays for the next attempt.
        """
        with self._lock():
            if entry_id is None:
                if damaged := self._journal.set_aside_damaged():
                    _put_back_everything(self._testbed)
                    self._journal.restored(damaged)
                chosen = [entry for entry in self.list() if not self._is_another_ones(entry)]
            else:
                chosen = [entry for entry in self.list() if entry.id == entry_id]
                if not chosen:
                    known = ", ".join(map(str, self.list())) or "none"
                    raise UsageError(f"testbed {self._testbed.name} has no fault {entry_id}; active are: {known}")
            self._heal(chosen)
        return tuple(chosen)

    def clear_dead(self) -> tuple[FaultEntry, ...]:
        """Heal the faults of dead processes and return them. Raise the same errors as `clear`."""
        with self._lock():
            chosen = [entry for entry in self.list() if entry.dead]
            self._heal(chosen)
        return tuple(chosen)

    @contextmanager
    def injected(self, fault: Fault) -> Iterator[int]:
        """Apply the fault with `add` for the duration of a block, then heal it; yield its id."""
        entry_id = self.add(fault)
        try:
            yield entry_id
        finally:
            with self._lock():
                self._heal([entry for entry in self.list() if entry.id == entry_id])

    def restart(self, host: str) -> None:
        """Stop Kafka on a host and start it, as an operator does: also one that a fault holds down.

        Kafka keeps the clock that a fault gives it. The call waits for a change of faults that is under way: two starts
        at once leave a process that the host's PID file does not name.
        """
        with self._lock():
            stop_kafka(self._testbed, host)
            start_kafka(self._testbed, host)

    def host_joined(self, host: str) -> None:
        """Give a host that has joined what the active faults of the network require, and end its former faults.

        Its links are new, so they have the declared shape and no filter. Its container is new as well: faults of a
        process, a disk or a limit went with the former host of that name. Raise `TestbedError`.
        """
        with self._lock():
            for entry in self.list():
                if getattr(entry.fault, "host", "") == host and not isinstance(entry.fault, NetworkFault):
                    self._journal.healed(entry)
            for fault in active_faults(self._testbed):
                fault.settle(self._testbed)

    # ---- the steps; the lock is held

    def _lock(self) -> AbstractContextManager[None]:
        return states.lock(f"{self._testbed.name}.faults", wait=True)

    def _is_another_ones(self, entry: FaultEntry) -> bool:
        return entry.owner not in (None, Owner.this_process()) and not entry.dead

    def _put_in(self, fault: Fault) -> None:
        fault.apply(self._testbed)
        try:
            wait_for(
                lambda: fault.verify(self._testbed),
                lambda instead: instead is None,
                timeout_s=fault.deadline_s,
                interval_s=_LOOK_S,
                what=as_text(fault),
            )
        except WaitTimeout as error:
            raise FaultDidNotFire(
                f"{as_text(fault)} did not take effect within {fault.deadline_s:g} s: {error.last_seen}"
            ) from error

    def _heal(self, entries: Sequence[FaultEntry]) -> None:
        """Heal `entries`; faults that ask brokers come after the brokers serve again."""
        for entry in entries:
            self._journal.healing(entry)
        problems: _Problems = []
        before = [entry for entry in entries if not entry.fault.asks_brokers]
        healed = _heal_each(self._testbed, before, problems)
        mine = {entry.id for entry in entries}
        # A fault whose earlier heal failed hinders all the same. An operator may restart a broker that is to be asked.
        if entries and not any(each.fault.hinders and each.id not in mine for each in self.list()):
            try:
                self._testbed.wait_serving(timeout_s=SERVING_S)
            except TestbedError as error:
                healed = [entry for entry in healed if not entry.fault.hinders]
                problems.append((str(error), error))
        healed += _heal_each(self._testbed, [entry for entry in entries if entry.fault.asks_brokers], problems)
        for entry in healed:
            self._journal.healed(entry)
        if problems:
            name = self._testbed.name
            raise TestbedError(
                f"testbed {name} is not back to what its topology declares:\n  "
                + "\n  ".join(text for text, _error in problems)
                + f"\n`testbed fault clear {name}` tries again"
            ) from problems[0][1]


def _heal_each(testbed: Testbed, entries: Sequence[FaultEntry], problems: _Problems) -> list[FaultEntry]:
    healed = []
    for entry in entries:
        try:
            if not entry.fault.has_left(testbed.topology):
                entry.fault.heal(testbed)
            healed.append(entry)
        except TestbedError as error:
            problems.append((f"fault {entry}: {error}", error))
    return healed


def _put_back_everything(testbed: Testbed) -> None:
    """Restore what faults can change, for damaged entries whose fault is unknown.

    Quotas, another client's reassignment, and the clock of a Kafka that runs are not restored.
    """
    settle_network(testbed)
    for host in testbed.topology.hosts:
        if not testbed.topology.exists:
            settle_cpu(testbed, host.name)
        if is_here(testbed.topology, host.name):
            settle_memory(testbed, host.name)
        settle_stampede(testbed, host.name)
        if host.node_id is not None:
            settle_disk(testbed, host.name)
            settle_process(testbed, host.name)
        elif host.role is Role.OBJECTSTORE:
            settle_store(testbed, host.name)


def heal_leftovers(testbed: Testbed, progress: Callable[[str], None]) -> None:
    """Heal the faults of dead processes on `testbed`, and report the remaining ones. Raise `TestbedError`."""
    faults = Faults(testbed)
    for entry in faults.clear_dead():
        progress(f"healed {as_text(entry.fault)}: the process that injected it is dead")
    for entry in faults.list():
        whose = f"process {entry.owner.pid}" if entry.owner else "a user"
        progress(f"fault {entry} is active, added by {whose}: `testbed fault clear {testbed.name} {entry.id}` heals it")


def reconfigure(
    testbed: Testbed,
    overlay: Mapping[str, str],
    defects: Mapping[str, tuple[str, ...]] | None,
    progress: Callable[[str], None],
) -> None:
    """Heal the faults of dead processes, and give the brokers the properties and defects of a run.

    Raise the errors of `heal_leftovers`, `require_restartable` and `Testbed.reconfigure`.
    """
    heal_leftovers(testbed, progress)
    if not testbed.is_configured(overlay, defects=defects):
        require_restartable(testbed)
    testbed.reconfigure(overlay, defects=defects, progress=progress)


def require_restartable(testbed: Testbed, hosts: Collection[str] | None = None) -> None:
    """Raise `TestbedError` when a restart of Kafka on these hosts (None: all) would end an active fault.

    The new process is not paused, and has the right clock. A paused one does not handle the request to end.
    """
    restarted = [host.name for host in testbed.topology.hosts] if hosts is None else hosts
    ended = [
        str(entry)
        for entry in FaultJournal(testbed.name).entries()
        if isinstance(entry.fault, ProcessFault) and not entry.fault.momentary and not entry.healing
        if entry.fault.host in restarted
    ]
    if ended:
        raise TestbedError(
            f"Kafka has to be restarted, which would end fault {', '.join(ended)}; "
            f"`testbed fault clear {testbed.name}` heals first"
        )


def collect_faults(attach: Callable[[str], Testbed], *, dry_run: bool) -> list[str]:
    """Heal the faults of dead processes on every testbed that is up; return a line for each testbed.

    Raise `TestbedError` with every failure, after all others are healed.
    """
    said, problems = [], []
    for name in states.names():
        try:
            what = ", ".join(as_text(entry.fault) for entry in _dead(name))
            if not what:
                continue
            if not dry_run:
                with closing(attach(name)) as testbed:
                    Faults(testbed).clear_dead()
            said.append(f"{name}: {'would be ' if dry_run else ''}healed of {what}, whose process is dead")
        except TestbedError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise TestbedError("\n".join([*said, *problems]))
    return said


def _dead(name: str) -> list[FaultEntry]:
    state = states.load(name)
    up = state is not None and state.status == "up"
    return [entry for entry in FaultJournal(name).entries() if entry.dead] if up else []
