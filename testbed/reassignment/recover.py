"""Taking away the throttles that dead processes left behind."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum

from testbed.kafka.errors import KafkaError, UnreachableError
from testbed.kafka.types import AdminApi
from testbed.reassignment.journal import Journal, JournalError, JournalFolder
from testbed.reassignment.restore import RestoreError, restore

AdminFactory = Callable[[str], AbstractContextManager[AdminApi]]


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


def recover(
    admin_for: AdminFactory, folder: JournalFolder, *, forget: bool = False, timeout_s: float = 15.0
) -> list[Recovery]:
    """Restore and remove every journal whose owner is dead; say for each what was done, or why nothing was.

    A journal is kept when its cluster cannot be reached, when another cluster answers at its address, when
    the restore fails, or when it cannot be read. With ``forget`` such a journal is removed without having
    been restored: for clusters that no longer exist. A live owner's journal is never touched.
    """
    return [_recover_one(admin_for, folder, journal_id, forget, timeout_s) for journal_id in folder.ids()]


def _recover_one(
    admin_for: AdminFactory, folder: JournalFolder, journal_id: str, forget: bool, timeout_s: float
) -> Recovery:
    try:
        journal = folder.read(journal_id)
    except JournalError as error:
        return _kept(folder, journal_id, Outcome.UNREADABLE, str(error), forget)
    if journal.owner.alive():
        detail = f"process {journal.owner.pid} is still running and will restore it itself"
        return Recovery(journal_id, Outcome.OWNER_ALIVE, detail)
    try:
        with admin_for(journal.bootstrap) as admin:
            found_id = admin.cluster().cluster_id
            if found_id != journal.cluster_id:
                why = (
                    f"at {journal.bootstrap} there is now cluster {found_id}, not {journal.cluster_id} whose "
                    f"configuration this is; nothing was changed"
                )
                return _kept(folder, journal_id, Outcome.OTHER_CLUSTER, why, forget)
            detail = _restore(admin, journal, timeout_s)
    except UnreachableError as error:
        why = f"the cluster at {journal.bootstrap} cannot be reached: {error}"
        return _kept(folder, journal_id, Outcome.UNREACHABLE, why, forget)
    except (KafkaError, RestoreError) as error:
        return _kept(folder, journal_id, Outcome.FAILED, str(error), forget)
    folder.remove(journal_id)
    return Recovery(journal_id, Outcome.RESTORED, detail)


def _restore(admin: AdminApi, journal: Journal, timeout_s: float) -> str:
    done = restore(admin, journal.changes, timeout_s)
    sentences = [f"{len(journal.changes)} settings put back on the cluster at {journal.bootstrap}"]
    sentences += [f"somebody else had changed {found}" for found in done.interferences]
    sentences += [f"topic {topic} no longer exists" for topic in done.gone]
    moving = admin.reassignments()
    if moving:
        sentences.append(f"{len(moving)} partitions are still moving there, now without this throttle")
    return "; ".join(sentences)


def _kept(folder: JournalFolder, journal_id: str, outcome: Outcome, why: str, forget: bool) -> Recovery:
    if forget:
        folder.remove(journal_id)
        return Recovery(journal_id, Outcome.FORGOTTEN, f"removed without being restored: {why}")
    return Recovery(journal_id, outcome, f"{why}; the journal {folder.file(journal_id)} is kept")
