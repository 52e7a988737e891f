"""Taking away the throttles that dead processes left behind."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.command_config import CommandConfig, CommandConfigError
from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import AdminApi
from testbed.reassignment.journal import Journal, JournalError, JournalFolder, open_journals
from testbed.reassignment.overlap import handed_up
from testbed.reassignment.raising import still_ours
from testbed.reassignment.restore import RestoreError, restore

AdminFactory = Callable[[Journal], AbstractContextManager[AdminApi]]
"""Connects to the cluster of a journal."""


class Outcome(StrEnum):
    """What became of a journal. Only ``RESTORED`` and ``FORGOTTEN`` have removed it."""

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

    journal_id: str
    outcome: Outcome
    detail: str


def connect(journal: Journal, security: CommandConfig | None = None) -> Admin:
    """Connect to a journal's cluster: as ``security`` says, or else as the file it names. Raises `TestbedError`."""
    if security is None and journal.command_config is not None:
        security = CommandConfig.load(Path(journal.command_config))
    return Admin(journal.bootstrap, timeout_s=5.0, security=security)


def recover(
    admin_for: AdminFactory, folder: JournalFolder, *, forget: bool = False, timeout_s: float = 15.0
) -> list[Recovery]:
    """Restore and remove every journal whose owner is dead; say for each what was done, or why nothing was.

    A journal is kept when its cluster cannot be reached, when another cluster answers at its address, when
    the restore fails, or when it cannot be read. With ``forget`` such a journal is removed without having
    been restored: for clusters that no longer exist. A live owner's journal is never touched, but for its originals:
    a key that a live throttle set over a dead one's is left to it, and so is what was there before both.
    """
    return [_recover_one(admin_for, folder, journal_id, forget, timeout_s) for journal_id in folder.ids()]


def collect_throttles(*, dry_run: bool) -> list[str]:
    """`recover` every throttle whose owner is dead; a line for each. Raises `TestbedError` for those that stay."""
    folder = JournalFolder()
    dead = [journal for journal in open_journals(folder) if not journal.owner.alive()]
    if dry_run:
        return [f"a throttle on {journal.bootstrap} would be taken away: its process is dead" for journal in dead]
    if not dead:
        return []
    found = recover(connect, folder)
    stay = [each.detail for each in found if each.outcome not in (Outcome.RESTORED, Outcome.OWNER_ALIVE)]
    said = [f"throttle: {each.detail}" for each in found if each.outcome is Outcome.RESTORED]
    if stay:
        raise TestbedError(
            "\n".join(
                [
                    *said,
                    *stay,
                    "where a cluster asks who you are, `testbed reassign recover --command-config FILE` connects as "
                    "that file says; `testbed reassign recover --forget` drops those whose clusters are gone for good",
                ]
            )
        )
    return said


def _recover_one(
    admin_for: AdminFactory, folder: JournalFolder, journal_id: str, forget: bool, timeout_s: float
) -> Recovery:
    try:
        journal = folder.read(journal_id)
    except JournalError as error:
        return _settled(folder, journal_id) or _kept(folder, journal_id, Outcome.UNREADABLE, str(error), forget)
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
                return _kept(folder, journal_id, Outcome.OTHER_CLUSTER, why, forget)
            with folder.held():
                # Connecting takes its time: somebody may have adopted it, or put it back, meanwhile.
                if settled := _settled(folder, journal_id):
                    return settled
                detail = _restore(admin, folder, folder.read(journal_id), timeout_s)
                folder.remove(journal_id)
    except UnreachableError as error:
        why = f"the cluster at {journal.bootstrap} cannot be reached: {error}"
        if journal.command_config is None:
            why += " (where it asks who you are: `testbed reassign recover --command-config FILE`)"
        return _kept(folder, journal_id, Outcome.UNREACHABLE, why, forget)
    except (KafkaError, RestoreError, CommandConfigError, JournalError) as error:
        return _kept(folder, journal_id, Outcome.FAILED, str(error), forget)
    return Recovery(journal_id, Outcome.RESTORED, detail)


def _settled(folder: JournalFolder, journal_id: str) -> Recovery | None:
    """What there is to say of a journal that is somebody else's to restore, or has been; None: neither."""
    if not folder.file(journal_id).exists():
        return Recovery(journal_id, Outcome.RESTORED, "somebody else has put it back meanwhile")
    try:
        owner = folder.read(journal_id).owner
    except JournalError:
        return None  # the caller says what is wrong with it
    if not owner.alive():
        return None
    detail = f"process {owner.pid} is still running and will restore it itself"
    return Recovery(journal_id, Outcome.OWNER_ALIVE, detail)


def _restore(admin: AdminApi, folder: JournalFolder, journal: Journal, timeout_s: float) -> str:
    alive = [each for each in open_journals(folder) if each.cluster_id == journal.cluster_id and each.owner.alive()]
    mine, corrected = handed_up(journal, alive)
    for each in corrected:
        folder.write(each)
    left = len([change for change in journal.changes if change.made]) - len(mine)
    # A rate that only was raised is not ours to re-create: whoever set it has taken it away, or set another.
    done = restore(admin, still_ours(admin, mine) if journal.raises else mine, timeout_s)
    sentences = [f"{len(done.changes)} settings put back on the cluster at {journal.bootstrap}"]
    sentences += [f"{left} left to living processes that have set them since"] if left else []
    sentences += [f"somebody else had changed {found}" for found in done.interferences]
    sentences += [f"topic {topic} no longer exists" for topic in done.gone]
    moving = admin.reassignments()
    if moving:
        sentences.append(f"{len(moving)} partitions are still moving there, now without this throttle")
    return "; ".join(sentences)


def _kept(folder: JournalFolder, journal_id: str, outcome: Outcome, why: str, forget: bool) -> Recovery:
    if forget:
        with folder.held():
            if settled := _settled(folder, journal_id):
                return settled
            folder.remove(journal_id)
        return Recovery(journal_id, Outcome.FORGOTTEN, f"removed without being restored: {why}")
    return Recovery(journal_id, outcome, f"{why}; the journal {folder.file(journal_id)} is kept")
