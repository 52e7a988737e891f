"""Phases: spans of a move in which the quota was one and no broker restarted. Windows are judged within one.

A phase begins when the move starts, when every broker shows a changed quota, or when a broker is back; it ends just
before a change is written, when a broker leaves, or when the move is done.
"""

from dataclasses import dataclass

from results.contract.move import Move
from results.criteria.series import RunSeries, Told

EDGES = (
    "throttle.in_force",
    "throttle.changing",
    "broker.leaving",
    "broker.back",
    "move.started",
    "move.done",
)


@dataclass(frozen=True, slots=True)
class Span:
    """One phase, in microseconds since the epoch.

    `first` begins with the move (nothing was copied before), `last` ends with it (growth that stopped earlier is its
    end). `leaders_known` is False once a broker has restarted: its partitions were led by others meanwhile, and maybe
    are still; a `broker.back` with ``leaders_as_planned`` says that they are not.
    """

    quota_bytes_per_s: float
    begin_us: int
    end_us: int
    first: bool = True
    last: bool = True
    leaders_known: bool = True


def phases(run: RunSeries, move: Move, started_us: int, watched_us: int) -> tuple[Span, ...]:
    """The phases of a move, in order. Without `move.done` the last one ends at `watched_us`.

    A quota in force again without a change before it changes nothing.
    """
    told = [event for event in run.told(EDGES) if event.kind == "throttle.in_force" or event.us >= started_us]
    quota = move.quota_bytes_per_s
    down, changing, known, ended = 0, False, True, False
    begin: int | None = None
    found: list[Span] = []

    def close(at: int, *, last: bool) -> None:
        if begin is not None and at > begin:
            found.append(Span(quota, begin, at, first=begin == started_us, last=last, leaders_known=known))

    for event in told:
        if event.us < started_us:
            quota = _rate(event, quota)
            continue
        if event.kind == "throttle.in_force" and not changing:
            continue
        close(event.us, last=event.kind == "move.done")
        if event.kind == "move.done":
            ended = True
            break
        if event.kind == "throttle.changing":
            changing = True
        elif event.kind == "throttle.in_force":
            changing, quota = False, _rate(event, quota)
        elif event.kind == "broker.leaving":
            down, known = down + 1, False
        elif event.kind == "broker.back":
            down, known = down - 1, event.detail.get("leaders_as_planned") is True
        begin = None if changing or down > 0 else event.us
    if not ended:
        close(watched_us, last=True)
    return tuple(found)


def _rate(event: Told, otherwise: float) -> float:
    rate = event.detail.get("rate_bytes_per_s")
    return float(rate) if isinstance(rate, int | float) and not isinstance(rate, bool) else otherwise
