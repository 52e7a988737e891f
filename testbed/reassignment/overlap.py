"""Two throttles of one cluster on the same keys: refused while both live; a dead one's is handed up."""

from collections.abc import Iterable
from dataclasses import replace

from testbed.reassignment.changes import Change, ThrottleError, Wanted
from testbed.reassignment.journal import Journal

_SHOWN = 4


def refuse_shared(wanted: Wanted, present: Wanted, others: Iterable[Journal]) -> None:
    """Refuse keys that another throttle has changed, or needs as they are, while its process lives.

    Whichever ended first would take the other's away. Two that only rely on what somebody else has set may share
    it: neither touches it. Raises `ThrottleError` naming the process, the keys, and what to do.
    """
    for journal in others:
        shared = [
            f"{change.resource}: {change.key}"
            for change in journal.changes
            if (value := wanted.get(change.resource, {}).get(change.key)) is not None
            and (change.made or value != present.get(change.resource, {}).get(change.key))
        ]
        if shared and journal.owner.alive():
            more = f" and {len(shared) - _SHOWN} more" if len(shared) > _SHOWN else ""
            raise ThrottleError(
                f"process {journal.owner.pid} has a throttle on the same keys ({', '.join(shared[:_SHOWN])}{more}): "
                f"whichever ends first would take the other's away. Nothing was changed; wait until that process has "
                f"put back what was there, or end it"
            )


def handed_up(dead: Journal, alive: Iterable[Journal]) -> tuple[tuple[Change, ...], tuple[Journal, ...]]:
    """Split a dead throttle's changes: those to put back now, and the live journals that are to do so at their end.

    A key that a live throttle set over the dead one stays as that needs it. What it noted as its original, if the dead
    one had set that, becomes what was there before the dead one. Returned are the remaining changes, and the journals
    to be written. A dead raise lies above a live throttle that has not noted the raised rate: that is put back.
    """
    lower = {(change.resource, change.key): change for change in dead.changes if change.made}
    left, corrected = dict(lower), []
    for journal in alive:
        changes = []
        for change in journal.changes:
            beneath = lower.get((change.resource, change.key))
            noted = beneath is not None and change.original in (beneath.now, beneath.value, *beneath.earlier)
            if beneath is not None and (noted or not dead.raises):
                left.pop((change.resource, change.key), None)
            changes.append(replace(change, original=beneath.original) if beneath is not None and noted else change)
        if tuple(changes) != journal.changes:
            corrected.append(replace(journal, changes=tuple(changes)))
    return tuple(left.values()), tuple(corrected)
