"""The restore of the configuration that a throttle changed, and the recovery of dead processes' throttles."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TypeVar

from results.contract.texts import counted, plural
from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.command_config import CommandConfig, CommandConfigError
from testbed.kafka.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError, UnreachableError
from testbed.kafka.types import ConfigResource
from testbed.throttle.configs import ConfigChange, by_resource, read_configs, shown
from testbed.throttle.journal import JournalFolder, ThrottleJournal, ThrottleJournalError, handed_up, open_journals
from testbed.wait import WaitTimeout, wait_for

RESTORE_TIMEOUT_S = 60.0
"""How long a restore waits for the brokers: two requests of Kafka's default `request.timeout.ms`, 30 s each.

A broker on a busy machine may answer none of its requests for ten seconds and more.
"""
_INTERVAL_S = 0.1
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Interference:
    """Another tool changed a key that a throttle had set: neither its value nor the original was found.

    ``left``: the restore left it as it was found.
    """

    change: ConfigChange
    found: str | None
    left: bool = False

    def __str__(self) -> str:
        back = "removed" if self.change.original is None else f"restored to {shown(self.change.original)}"
        back = "left so" if self.left else back
        what = f"{self.change.resource}: {self.change.key}"
        return f"{what} was {shown(self.found)}, not {shown(self.change.value)} as set; {back}"


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """A verified restore. ``gone``: topics that were deleted meanwhile and so need none."""

    changes: tuple[ConfigChange, ...] = ()
    interferences: tuple[Interference, ...] = ()
    gone: tuple[str, ...] = ()


class RestoreError(TestbedError):
    """A key could not be restored, or was not as restored afterwards; ``problems`` has one line for each."""

    def __init__(self, problems: Sequence[str], done: RestoreResult) -> None:
        self.problems = tuple(problems)
        self.done = done
        hint = "the journal has the originals: `testbed reassign recover` restores them when this command has ended"
        super().__init__("the throttle was not wholly removed:\n  " + "\n  ".join([*problems, hint]))


def restore(admin: Admin, changes: Sequence[ConfigChange], timeout_s: float) -> RestoreResult:
    """Restore every changed key to its original value or absence, and wait until the brokers report it.

    A key that another tool has removed stays removed: the throttle that the original belonged to is over.
    Every resource is tried, also after another has failed; then `RestoreError` lists the failed ones. ``timeout_s``
    bounds the wait for all resources.
    """
    changes = [change for change in changes if change.made]
    restoring = _Restore(admin, by_resource(changes))
    restoring.put_back()
    restoring.wait(timeout_s)
    done = RestoreResult(tuple(changes), tuple(restoring.interferences), tuple(restoring.gone))
    if restoring.problems:
        raise RestoreError(list(restoring.problems.values()), done)
    return done


class _Restore:
    """One restore: the remaining resources, and the values that it found."""

    def __init__(self, admin: Admin, todo: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        self._admin = admin
        self._left = dict(todo)
        self.interferences: list[Interference] = []
        self.gone: list[str] = []
        self.problems: dict[ConfigResource, str] = {}

    def put_back(self) -> None:
        """Write every original; a resource that fails becomes a problem."""
        for resource, found in self._read().items():
            over = [c for c in self._left[resource] if found.get(c.key) is None and None not in c.ours]
            self.interferences += [Interference(change, None, left=True) for change in over]
            mine = self._left[resource] = [change for change in self._left[resource] if change not in over]
            if not mine:
                del self._left[resource]
                continue
            self._try(
                resource,
                partial(
                    self._admin.alter_configs,
                    resource,
                    {change.key: change.original for change in mine if change.original is not None},
                    [change.key for change in mine if change.original is None],
                ),
                as_it_was=all(found.get(change.key) == change.original for change in mine),
            )
            if resource in self._left:  # a topic that is gone lacks nothing
                self.interferences += [
                    Interference(change, found.get(change.key))
                    for change in mine
                    if found.get(change.key) not in change.ours
                ]

    def wait(self, timeout_s: float) -> None:
        """Wait until every resource has its originals."""
        try:
            wait_for(self._different, lambda left: not left, timeout_s, _INTERVAL_S, "the originals")
        except WaitTimeout as error:
            self.problems |= {
                resource: f"waited {timeout_s:g} s for the originals of {resource}; last seen: {seen}"
                for resource, seen in error.last_seen.items()
            }

    def _different(self) -> dict[ConfigResource, list[str]]:
        found = {}
        for resource, there in self._read().items():
            found[resource] = [
                f"{change.key} is {shown(there.get(change.key))}, originally {shown(change.original)}"
                for change in self._left[resource]
                if there.get(change.key) != change.original
            ]
        return {resource: seen for resource, seen in found.items() if seen}

    def _read(self) -> dict[ConfigResource, Mapping[str, str]]:
        """Return the present configuration of each remaining resource that can be read."""
        topics = [resource for resource in self._left if resource.kind == "topic"]
        keys = sorted({change.key for resource in topics for change in self._left[resource]})
        found: dict[ConfigResource, Mapping[str, str]] = {}
        try:
            lists = self._admin.topics_configs([topic.name for topic in topics], keys) if topics else {}
            # A topic without a value may be deleted: if a value is expected, a separate request checks the topic.
            found = {
                topic: lists.get(topic.name, {})
                for topic in topics
                if topic.name in lists or all(change.original is None for change in self._left[topic])
            }
        except KafkaError:
            pass  # one of them is refused or fails: the requests for single topics below show which
        for resource in [each for each in self._left if each not in found]:
            there = self._try(resource, partial(read_configs, self._admin, resource))
            if there is not None:
                found[resource] = there
        return found

    def _try(self, resource: ConfigResource, function: Callable[[], _T], *, as_it_was: bool = False) -> _T | None:
        """Return the result of a request; None if it fails, and then the resource is done.

        A user without the right to write has not written: with all keys `as_it_was` no restore is necessary.
        """
        try:
            return function()
        except KafkaError as error:
            del self._left[resource]
            if resource.kind == "topic" and error.name == UNKNOWN_TOPIC_OR_PARTITION:
                self.gone.append(resource.name)
            elif not (as_it_was and error.name.endswith("_AUTHORIZATION_FAILED")):
                self.problems[resource] = str(error)
            return None


AdminFactory = Callable[[ThrottleJournal], AbstractContextManager[Admin]]
"""A function that connects to the cluster of a journal."""


class RecoveryOutcome(StrEnum):
    """The outcome for one journal. Only ``RESTORED`` and ``FORGOTTEN`` remove it."""

    RESTORED = "restored"
    OWNER_ALIVE = "owner alive"
    UNREACHABLE = "unreachable"
    OTHER_CLUSTER = "other cluster"
    FAILED = "failed"
    UNREADABLE = "unreadable"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Recovery:
    """One journal's outcome, and a sentence for the user."""

    outcome: RecoveryOutcome
    detail: str


def connect(journal: ThrottleJournal, security: CommandConfig | None = None) -> Admin:
    """Connect to a journal's cluster with ``security``, or else with the file it names. Raise `TestbedError`."""
    if security is None and journal.command_config is not None:
        security = CommandConfig.load(Path(journal.command_config))
    return Admin(journal.bootstrap, timeout_s=5.0, security=security)


def recover(
    admin_for: AdminFactory, folder: JournalFolder, *, forget: bool = False, timeout_s: float = RESTORE_TIMEOUT_S
) -> list[Recovery]:
    """Restore and remove every journal whose owner is dead, and return the outcome of each.

    A journal stays if its cluster is unreachable or another one, if the restore fails, or if it is unreadable. With
    ``forget`` it is then removed without a restore. The journal of a live owner stays; a live throttle that has set a
    key over a dead one's value inherits its original.
    """
    return [_recover_one(admin_for, folder, journal_id, forget, timeout_s) for journal_id in folder.ids()]


def collect_throttles(*, dry_run: bool) -> list[str]:
    """Recover every throttle of a dead owner; return a line for each. Raise `TestbedError` when a journal stays."""
    folder = JournalFolder()
    dead = [journal for journal in open_journals(folder) if not journal.owner.alive()]
    if dry_run:
        return [f"a throttle on {journal.bootstrap} would be removed: its process is dead" for journal in dead]
    if not dead:
        return []
    found = recover(connect, folder)
    gone = (RecoveryOutcome.RESTORED, RecoveryOutcome.OWNER_ALIVE)
    said = [f"throttle: {each.detail}" for each in found if each.outcome is RecoveryOutcome.RESTORED]
    if stay := [each.detail for each in found if each.outcome not in gone]:
        hint = (
            "where a cluster asks who you are, `testbed reassign recover --command-config FILE` connects as that file "
            "says; `testbed reassign recover --forget` drops those whose clusters are gone for good"
        )
        raise TestbedError("\n".join([*said, *stay, hint]))
    return said


def _recover_one(
    admin_for: AdminFactory, folder: JournalFolder, journal_id: str, forget: bool, timeout_s: float
) -> Recovery:
    try:
        journal = folder.read(journal_id)
    except ThrottleJournalError as error:
        return _settled(folder, journal_id) or _kept(folder, journal_id, RecoveryOutcome.UNREADABLE, str(error), forget)
    if settled := _settled(folder, journal_id):
        return settled
    try:
        with admin_for(journal) as admin:
            found_id = admin.cluster().cluster_id
            if found_id != journal.cluster_id:
                why = (
                    f"at {journal.bootstrap} there is now cluster {found_id}, not {journal.cluster_id} whose "
                    f"configuration this is; nothing was changed"
                )
                return _kept(folder, journal_id, RecoveryOutcome.OTHER_CLUSTER, why, forget)
            with folder.held():
                # Connecting takes time: another process may have adopted or restored it meanwhile.
                if settled := _settled(folder, journal_id):
                    return settled
                detail = _restore(admin, folder, folder.read(journal_id), timeout_s)
                folder.remove(journal_id)
    except UnreachableError as error:
        why = f"the cluster at {journal.bootstrap} cannot be reached: {error}"
        if journal.command_config is None:
            why += " (where it asks who you are: `testbed reassign recover --command-config FILE`)"
        return _kept(folder, journal_id, RecoveryOutcome.UNREACHABLE, why, forget)
    except (KafkaError, RestoreError, CommandConfigError, ThrottleJournalError) as error:
        return _kept(folder, journal_id, RecoveryOutcome.FAILED, str(error), forget)
    return Recovery(RecoveryOutcome.RESTORED, detail)


def _settled(folder: JournalFolder, journal_id: str) -> Recovery | None:
    """Return the outcome of a journal that another process restores, or has restored; None: neither."""
    if not folder.file(journal_id).exists():
        return Recovery(RecoveryOutcome.RESTORED, "another process has restored it meanwhile")
    try:
        owner = folder.read(journal_id).owner
    except ThrottleJournalError:
        return None  # the caller reports the error
    if not owner.alive():
        return None
    return Recovery(RecoveryOutcome.OWNER_ALIVE, f"process {owner.pid} is still running and will restore it itself")


def _restore(admin: Admin, folder: JournalFolder, journal: ThrottleJournal, timeout_s: float) -> str:
    alive = [each for each in open_journals(folder) if each.cluster_id == journal.cluster_id and each.owner.alive()]
    mine, corrected = handed_up(journal, alive)
    for each in corrected:
        folder.write(each)
    left = len([change for change in journal.changes if change.made]) - len(mine)
    # A raised rate that has changed since belongs to another tool, which has removed it or set another.
    done = restore(admin, still_ours(admin, mine) if journal.raises else mine, timeout_s)
    sentences = [f"{plural(len(done.changes), 'setting')} restored on the cluster at {journal.bootstrap}"]
    sentences += [f"{left} left to living processes that have set them since"] if left else []
    sentences += [f"another client had changed {found}" for found in done.interferences]
    sentences += [f"topic {topic} no longer exists" for topic in done.gone]
    moving = admin.reassignments()
    if moving:
        sentences.append(f"{counted(len(moving), 'partition', 'is')} still moving there, now without this throttle")
    return "; ".join(sentences)


def _kept(folder: JournalFolder, journal_id: str, outcome: RecoveryOutcome, why: str, forget: bool) -> Recovery:
    if forget:
        with folder.held():
            if settled := _settled(folder, journal_id):
                return settled
            folder.remove(journal_id)
        return Recovery(RecoveryOutcome.FORGOTTEN, f"removed without being restored: {why}")
    return Recovery(outcome, f"{why}; the journal {folder.file(journal_id)} stays")


def still_ours(admin: Admin, raised: Iterable[ConfigChange]) -> list[ConfigChange]:
    """Return the raised rates that are still in force, and the rates that cannot be read."""
    return [change for change in raised if _is_as_raised(admin, change)]


def _is_as_raised(admin: Admin, change: ConfigChange) -> bool:
    try:
        there = read_configs(admin, change.resource).get(change.key)
    except KafkaError:
        return True  # `restore` tries again and reports the error
    return there in (change.value, *change.earlier)
