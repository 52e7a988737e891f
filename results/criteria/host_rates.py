"""The growth of listed logs through one host, as numbers: its windows, its steady part, and Kafka's byte-rate of it.

Instants are seconds after `move.started`; rates are bytes per second; None is *could not be measured*.
"""

from dataclasses import dataclass

from results.contract.verdict import Direction


@dataclass(frozen=True, slots=True)
class ByteWindow:
    """Listed bytes between two sample instants; `in_sync_bytes` of them went to replicas in sync."""

    bytes: float
    elapsed_s: float
    start_s: float
    in_sync_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class SteadyPart:
    """The part between the warm-up and the tail of a move; `windows` whole quota windows fit into it.

    `variation` is standard deviation over mean of the 1 s rates; `lowest_window` the slowest quota window's
    rate, `window_mean` the mean over all of them, one that begins with each reading: `averaged` in number.
    """

    mean_bytes_per_s: float
    seconds: float
    windows: int
    variation: float | None
    lowest_window_bytes_per_s: float | None
    window_mean_bytes_per_s: float | None = None
    averaged: int = 0

    @property
    def typical_bytes_per_s(self) -> float:
        """Return the mean over all quota windows, where there is one.

        A leader's quota lets a whole window's bytes pass at once and then nothing until they have expired, again and
        again. The plain mean depends on how much of such a cycle the steady part begins and ends with.
        """
        return self.mean_bytes_per_s if self.window_mean_bytes_per_s is None else self.window_mean_bytes_per_s


FADING_S = 3.0
"""Seconds after the last growth in which a byte-rate that fades tells how long the sensor's window is: by a tenth in
the first second of 11, by a fifth of 5. Later there is less left than a sample may be off by."""


@dataclass(frozen=True, slots=True)
class SensorPart:
    """Kafka's byte-rate of `polls` polls over its prediction. Every prediction that the logs allow lies at most
    `spread` from it; `share` is the prediction over the mean rate of the logs."""

    ratio: float
    polls: int
    spread: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class SensorReadings:
    """Kafka's byte-rate of `polls` polls over what its sensor should read, on average; `ratio` is None if too few.

    The prediction is the middle of two, with and without the responses that carry no listed bytes. Every prediction
    that the logs allow lies at most `spread` from it. The sensor divided by `spanned_s` at least, while logs grew by
    `bytes_per_s`. `worst` are the polls of one quota window whose ratio is furthest from 1, `highest_bytes_per_s` is
    the highest mean of as many. `ended` is the last poll within `FADING_S` after the last growth.
    """

    ratio: float | None
    polls: int
    spread: float
    spanned_s: float
    bytes_per_s: float = 0.0
    worst: SensorPart | None = None
    highest_bytes_per_s: float | None = None
    ended: SensorPart | None = None


@dataclass(frozen=True, slots=True)
class HostRates:
    """Listed log growth through one host in one direction, in one phase or in the whole move.

    `worst_window` exceeds what is allowed by most (or comes nearest to it) of all windows of at most the quota's
    window, from reading to reading; `first_window` is the shortest of at least the quota's window that begins with
    the phase, `second_window` that which begins the quota's window later; `settled_bytes_per_s` is the mean
    rate of this and those that begin up to a window after it, the last of them `settled_s` later. `all` is everything
    from the beginning (or the first reading after that) to the end. `fullest` is the time from a move's start until the
    reading with most bytes beyond quota × time; None where the quota's sensor has recorded something before.
    `highest_window` and `highest_second` are rates over at least that window, or a second. `end_s` is when the growth
    stopped. `kafka` compares Kafka's own byte-rate. `counted` is what the broker counted over the growth of the logs;
    None if it does not say. `longest_gap_s` is the longest time between two
    samples from the move's start to its end.
    """

    host: str
    direction: Direction
    total_bytes: float
    end_s: float | None
    longest_gap_s: float | None
    worst_window: ByteWindow | None
    highest_window_bytes_per_s: float | None
    highest_second_bytes_per_s: float | None
    warmup_bytes_per_s: float | None
    steady: SteadyPart | None
    kafka: SensorReadings = SensorReadings(None, 0, 0.0, 0.0)
    counted: float | None = None
    first_window: ByteWindow | None = None
    second_window: ByteWindow | None = None
    settled_bytes_per_s: float | None = None
    settled_s: float = 0.0
    all: ByteWindow | None = None
    fullest: ByteWindow | None = None

    @property
    def refetched(self) -> float | None:
        """Return what the broker counted beyond the growth of the logs, as a part of that: what is fetched again."""
        return None if self.counted is None else max(0.0, self.counted - 1)

    @property
    def steady_bytes_per_s(self) -> float | None:
        """Return the steady rate; None unless the steady part has a whole quota window: what is shorter says little."""
        return self.steady.typical_bytes_per_s if self.steady is not None and self.steady.windows else None

    @property
    def mean_bytes_per_s(self) -> float | None:
        """Return the mean from the beginning to the end; None where nothing grew."""
        return self.all.bytes / self.all.elapsed_s if self.all is not None and self.all.elapsed_s > 0 else None


@dataclass(frozen=True, slots=True)
class PhaseMeasures:
    """One phase: a span of one quota in which no broker restarted.

    With `leaders_known` False a broker has restarted before: who sent what is not known, and not among `rates`.
    """

    quota_bytes_per_s: float
    begin_s: float
    end_s: float
    leaders_known: bool
    rates: tuple[HostRates, ...]
