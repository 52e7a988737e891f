"""What is measured of a throttled move, as plain numbers. Judgement, report and Spark share these types.

Instants are seconds after `move.started`; rates are bytes per second; None is *could not be measured*.
"""

from dataclasses import dataclass
from typing import Literal

from results.contract.verdict import Direction
from results.criteria.burden import Burden
from results.criteria.live_measures import ClientView, Isr, Stuck
from results.criteria.relocated import RelocationMeasures
from results.criteria.rests import Rests
from results.criteria.steps_seen import StepMeasures

Side = Literal["leader", "follower"]

GAP_S = 3.0
"""Longest time between two samples of a host that still counts as sampled once a second."""
SECOND_S = 0.9
"""Shortest distance of two samples that counts as *one second*: a 1 Hz sampler jitters by some ms."""


READING_S = 0.05
"""Longest time that one reading of all logs of a host takes: it is a part of the window between two readings."""


@dataclass(frozen=True, slots=True)
class Window:
    """Listed bytes between two sample instants; `in_sync_bytes` of them went to replicas in sync."""

    bytes: float
    elapsed_s: float
    start_s: float
    in_sync_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Steady:
    """The part between the warm-up and the tail of a move; `windows` whole quota windows fit into it.

    `variation` is standard deviation over mean of the 1 s rates; `lowest_window` the slowest quota window's
    rate, `window_mean` the mean over all of them.
    """

    mean_bytes_per_s: float
    seconds: float
    windows: int
    variation: float | None
    lowest_window_bytes_per_s: float | None
    window_mean_bytes_per_s: float | None = None

    @property
    def typical_bytes_per_s(self) -> float:
        """The mean over all quota windows, where there is one.

        A leader's quota lets a whole window's bytes pass at once and then nothing until they have expired, again and
        again. The plain mean depends on how much of such a cycle the steady part begins and ends with.
        """
        return self.mean_bytes_per_s if self.window_mean_bytes_per_s is None else self.window_mean_bytes_per_s


@dataclass(frozen=True, slots=True)
class HostRates:
    """Listed log growth through one host in one direction, in one phase or in the whole move.

    `worst_window` exceeds what is allowed by most (or comes nearest to it) of all windows of at most the quota's
    window, from reading to reading; `first_window` is the shortest of at least the quota's window that begins with
    the phase, `second_window` that which begins the quota's window later; `settled_bytes_per_s` is the mean
    rate of this and those that begin up to a window after it, the last of them `settled_s` later. `all` is everything
    from the beginning (or the first reading after that) to the end.
    `highest_window` and `highest_second` are rates over at least that window, or a second. `end_s` is when the growth
    stopped. `kafka_ratio` is the median of Kafka's own byte-rate over ours in the steady part, from
    `kafka_polls` polls. `longest_gap_s` is the longest time between two samples from the move's start to
    its end.
    """

    host: str
    direction: Direction
    total_bytes: float
    end_s: float | None
    longest_gap_s: float | None
    worst_window: Window | None
    highest_window_bytes_per_s: float | None
    highest_second_bytes_per_s: float | None
    warmup_bytes_per_s: float | None
    steady: Steady | None
    kafka_ratio: float | None
    kafka_polls: int
    first_window: Window | None = None
    second_window: Window | None = None
    settled_bytes_per_s: float | None = None
    settled_s: float = 0.0
    all: Window | None = None

    @property
    def steady_bytes_per_s(self) -> float | None:
        """The steady rate; None unless the steady part has a whole quota window: what is shorter says little."""
        return self.steady.typical_bytes_per_s if self.steady is not None and self.steady.windows else None


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


@dataclass(frozen=True, slots=True)
class NicRate:
    """TCP payload on a host's data NIC over the steady part, from its byte counters (Ethernet's framing taken off)."""

    host: str
    direction: Direction
    payload_bytes_per_s: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class QuotaPolls:
    """What one broker said its quota was during the move; `different` polls said something else than the phase's.

    `longest_gap_s` is the longest time without a poll within a phase. `unlisted` polls said that its topics' lists lack
    replicas that were throttled; 0 also for a run that was recorded before lists were polled.
    """

    host: str
    side: Side
    polls: int
    longest_gap_s: float | None
    different: int
    first_different_s: float | None
    first_different_bytes_per_s: float | None
    unlisted: int = 0
    first_unlisted_s: float | None = None
    first_unlisted_replicas: float | None = None


@dataclass(frozen=True, slots=True)
class Conservation:
    """Bytes on a host's data NIC, and in logs fed through it, over the move and the control transfer."""

    host: str
    direction: Direction
    nic_bytes: float | None
    throttled_bytes: float | None
    control_bytes: float | None
    calibration_bytes: float | None
    client_bytes: float | None


@dataclass(frozen=True, slots=True)
class Control:
    """The unthrottled control transfer into one host while the throttle was in force.

    `last_s` is when its log grew last, from the move's start; `with_throttled_bytes` is what control and throttled
    logs together grew by while it was copied.
    """

    host: str
    leaders: tuple[str, ...]
    total_bytes: float
    peak_bytes_per_s: float | None
    longest_gap_s: float | None
    last_s: float | None = None
    with_throttled_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """The machine's load over the move, fractions of all cores; maxima are means over one quota window."""

    polls: int
    longest_gap_s: float | None
    busy_mean: float | None
    busy_window_max: float | None
    steal_window_max: float | None


@dataclass(frozen=True, slots=True)
class MoveMeasures:
    """Everything measured of one move. `started_us` is None when no `move.started` was recorded.

    `throttled_s` is from the start until listed bytes stopped growing, `done_s` until `move.done`; `moved_s` until
    either that or until no partition was being reassigned, whichever came first.
    `kip73_ratio` is `throttled_s` over KIP-73's estimate `kip73_s`. `rates` are those of the whole move. `left` and
    `back` are the hosts whose brokers were restarted and came back meanwhile. `rests` are those of a move
    whose list was looked at.
    """

    started_us: int | None
    throttled_s: float | None
    done_s: float | None
    kip73_s: float
    kip73_ratio: float | None
    rates: tuple[HostRates, ...]
    quotas: tuple[QuotaPolls, ...]
    conservation: tuple[Conservation, ...]
    controls: tuple[Control, ...]
    load: MachineLoad
    moved_s: float | None = None
    phases: tuple[PhaseMeasures, ...] = ()
    nics: tuple[NicRate, ...] = ()
    isr: Isr | None = None
    stuck: Stuck | None = None
    clients: tuple[ClientView, ...] = ()
    burden: Burden | None = None
    left: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    rests: Rests | None = None
    steps: StepMeasures | None = None
    relocation: RelocationMeasures | None = None
