"""Broker directions in each phase of a move, for the criteria of quota windows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from results.contract.move import Move
from results.contract.verdict import Direction
from results.criteria.findings import gap_text
from results.criteria.host_rates import ByteWindow, HostRates, PhaseMeasures
from results.criteria.measures import MoveMeasures
from results.criteria.model import allowed, bottlenecks, bound_of, long_bound
from results.criteria.pace import slower_than_quota
from results.criteria.quantities import READING_S, at, rate, size

PayloadRates = Mapping[tuple[str, Direction], float | None]
"""What the NIC of a host was measured to carry in a direction, in bytes per second."""
ABOVE_NICS = "the quota lies above what the NICs carry, on purpose"
NEVER_ABOVE = "the bound holds whatever brokers do"
"""The reason why a bound says nothing of brokers: the NIC carries no more."""
BACKOFF_S = 1.0
"""Kafka's own `replica.fetch.backoff.ms`: how long a fetcher that was held back may wait before it looks again."""
WAIT_S = 0.5
"""Kafka's own `replica.fetch.wait.max.ms`: how long a fetch that finds nothing may wait at the leader."""


def carried_within(bound: float, seconds: float, payload: float | None) -> float | None:
    """Return the bytes that a NIC carries in a time where these are within a bound; None where they may be more.

    `payload` is its measured rate, in bytes per second; of a NIC without one they may be more.
    """
    return None if payload is None or payload * seconds > bound else payload * seconds


@dataclass(frozen=True, slots=True)
class PhaseDirection:
    """One host and direction in one phase; the phase's `number` is 0 where it is the only one."""

    rates: HostRates
    phase: PhaseMeasures
    number: int

    @property
    def words(self) -> str:
        """Return the phase as the beginning of a sentence; empty where it is the only one."""
        return f"phase {self.number}, {rate(self.quota)} from {at(self.phase.begin_s)}: " if self.number else ""

    @property
    def quota(self) -> float:
        """Return the quota of the phase in bytes per second."""
        return self.phase.quota_bytes_per_s

    @property
    def place(self) -> tuple[str, Direction, float]:
        """Return where, and under which quota."""
        return self.rates.host, self.rates.direction, self.quota

    @property
    def begins(self) -> bool:
        """Return whether the phase begins with the move: its sensors have recorded nothing before."""
        return self.phase.begin_s == 0

    def slower_than_quota(self, move: Move) -> str:
        """Return why the declared delays keep the rate below the quota; empty where they do not."""
        return slower_than_quota(move, self.rates.host, self.rates.direction, self.quota)

    def long_bound(self, move: Move, late_s: float = 0.0) -> float | None:
        """Return most bytes of the whole phase; None when its time or its fetchers are not known.

        The last reading may have been made `late_s` after its instant.
        """
        return None if self.rates.all is None else self._bound_of(self.rates.all, move, late_s)

    def _bound_of(self, found: ByteWindow, move: Move, late_s: float) -> float | None:
        seconds = found.elapsed_s + READING_S + late_s
        return long_bound(move, self.rates.host, self.rates.direction, self.quota, seconds, fresh=self.begins)

    def too_early(self, move: Move, late_s: float = 0.0) -> str:
        """Return what is said of a time from the start with more bytes than its quota allows of it; empty without one.

        The bound from the first record holds at any time (`docs/throttle-bound.md`, *The steady mean*).
        """
        found = self.rates.fullest
        most = None if found is None else self._bound_of(found, move, late_s)
        if found is None or most is None or found.bytes <= most:
            return ""
        return f"{size(found.bytes)} in the first {found.elapsed_s:.1f} s, of which the quota allows {size(most)}"

    def too_much(self, move: Move) -> str | None:
        """Return what is said of a phase with more bytes than its quota allows of its time; None of any other.

        A leak may end a move before there is a steady part to judge.
        """
        found, most = self.rates.all, self.long_bound(move)
        if found is None or most is None or found.bytes <= allowed(most, found.in_sync_bytes):
            return None
        return f"{size(found.bytes)} in {found.elapsed_s:.1f} s: the quota allows {size(most)}, so it ended too soon"

    def never_above(self, bound: float, seconds: float, carries: PayloadRates) -> str:
        """Return why this end has at most so many bytes in a time, whatever brokers do: its NIC carries no more.

        Return an empty text where the NIC carries more, or was not measured: `nic-measured` does not hold then.
        """
        most = carried_within(bound, seconds, carries.get((self.rates.host, self.rates.direction)))
        if most is None:
            return ""
        return f"the NIC carries {size(most)} in {seconds:.1f} s: {NEVER_ABOVE}"


def phase_directions(measures: MoveMeasures) -> Iterator[PhaseDirection]:
    """Yield every host and direction of every phase."""
    several = len(measures.phases) > 1
    for number, phase in enumerate(measures.phases, 1):
        for rates in phase.rates:
            yield PhaseDirection(rates, phase, number if several else 0)


def quotas_text(measures: MoveMeasures, move: Move) -> str:
    """Return the quotas of the phases, one after the other."""
    rates = [rate(phase.quota_bytes_per_s) for phase in measures.phases] or [rate(move.quota_bytes_per_s)]
    return ", then ".join(now for now, _same in groupby(rates))


def bottleneck_directions(measures: MoveMeasures, move: Move) -> Iterator[PhaseDirection]:
    """Yield where the quota is what binds, by the model; without one everywhere: nothing says who had less to carry."""
    for end in phase_directions(measures):
        if not move.expected or (end.rates.host, end.rates.direction) in bottlenecks(move, end.quota):
            yield end


def informative_directions(measures: MoveMeasures, move: Move) -> list[PhaseDirection]:
    """Return all ends and phases, but those phases that say nothing of an end of which others with the same quota do.

    When a broker comes back just before the move is done, what is left is a phase in which nothing moves, or one too
    short for a window. It was watched without a gap, and what it has is within the bound: else it is judged.
    """
    ends = [(end, _silent(end, move)) for end in phase_directions(measures)]
    known = {end.place for end, silent in ends if not silent}
    return [end for end, silent in ends if not silent or end.place not in known]


def _silent(end: PhaseDirection, move: Move) -> bool:
    rates, seconds = end.rates, end.phase.end_s - end.phase.begin_s
    unwatched = seconds if rates.longest_gap_s is None else rates.longest_gap_s
    if not end.number or gap_text(unwatched):
        return False
    if rates.total_bytes <= 0:
        return True
    bound, worst = bound_of(move, rates.host, rates.direction, end.quota), rates.worst_window
    if bound is None or rates.highest_window_bytes_per_s is not None or seconds >= move.window_s:
        return False
    return rates.total_bytes <= allowed(bound, worst.in_sync_bytes if worst else 0.0)


def default_lowest(move: Move, quota: float) -> float:
    """Return part of the quota that a follower with Kafka's own settings uses at least, where the quota binds.

    It is held back only when there was more than quota × e in the last e seconds, and looks again after a pause of at
    most backoff + wait: e ÷ (e + pause) of the quota. The oldest response that counts is at least as old as the window
    less the time between two responses.
    """
    pause = BACKOFF_S + WAIT_S
    spanned = max(move.window_s - move.response_max_bytes / quota - pause, move.sample_s)
    return spanned / (spanned + pause)
