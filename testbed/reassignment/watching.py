"""Following a move to its end, and raising its throttle when it is stuck."""

from collections.abc import Callable
from dataclasses import dataclass

from testbed.kafka.errors import UnreachableError
from testbed.kafka.types import AdminApi
from testbed.reassignment.interrupt import deferred_signals
from testbed.reassignment.journal import JournalFolder
from testbed.reassignment.raising import Raised, next_rate
from testbed.reassignment.restore import Restored
from testbed.reassignment.sizes import Pauses
from testbed.reassignment.watch import PATIENCE_S
from testbed.reassignment.watcher import Look, Watcher


@dataclass(frozen=True, slots=True)
class Raise:
    """The throttle was raised, in B/s, on these brokers."""

    rate_bytes_per_s: int
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something else to be told, in words."""

    text: str


Tell = Callable[[Look | Raise | Restored | Note], None]


def watch(
    admin: AdminApi,
    tell: Tell,
    journals: JournalFolder,
    *,
    interval_s: float = 2.0,
    patience_s: float = PATIENCE_S,
    most_bytes_per_s: int | None = None,
    once: bool = False,
    command_config: str | None = None,
    pauses: Pauses | None = None,
) -> Look:
    """Look every ``interval_s`` until nothing is being reassigned, and tell each look; returns the last.

    With ``most_bytes_per_s`` a move that is stuck has its throttle raised, step by step, never above that; what it
    was is put back at the end, however that comes. With ``once`` there are two looks, as a rate needs, and the second
    is told. A look without an answer is told and followed by the next, but for ``once``. Raises `KafkaError`.
    """
    pauses = pauses or Pauses()
    watcher = Watcher(admin, patience_s, pauses)
    raised = Raised(admin, journals, command_config)
    exhausted = False
    looks = 0
    try:
        while True:
            try:
                look = watcher.look()
            except UnreachableError as error:
                if once:
                    raise
                tell(Note(str(error)))
                pauses.sleep(interval_s)
                continue
            looks += 1
            last = look.done or (once and looks == 2)
            if last or not once:
                tell(look)
            if last:
                return look
            if look.stuck is not None and most_bytes_per_s is not None and not exhausted:
                exhausted = not _raise(watcher, raised, look, most_bytes_per_s, tell)
            pauses.sleep(interval_s)
    finally:
        with deferred_signals():
            done = raised.restore()
            if done.changes:
                tell(done)


def _raise(watcher: Watcher, raised: Raised, look: Look, most_bytes_per_s: int, tell: Tell) -> bool:
    """Go one step up; returns whether there may be another."""
    now = look.lowest_quota
    if now is None:
        tell(Note("stuck, and no throttle is in force where it moves: there is nothing to raise"))
        return False
    needed = max((share.keepup_bytes_per_s for share in look.too_low), default=0.0)
    rate = next_rate(now, needed, most_bytes_per_s)
    if rate is None:
        tell(Note("stuck with the throttle as high as --auto-raise allows"))
        return False
    brokers = {each.broker for each in look.rates if each.quota_bytes_per_s is not None}
    tell(Raise(rate, raised.to(rate, brokers)))
    watcher.restart()
    return True
