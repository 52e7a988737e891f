"""The types of a run's measures: plain numbers that judgement, report and comparison share.

Instants are seconds after `move.started`; rates are bytes per second; None is *could not be measured*.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from results.contract.steps import State
from results.contract.verdict import Direction
from results.criteria.host_rates import HostRates, PhaseMeasures

Part = Literal["before", "during", "after"]
PARTS: tuple[Part, ...] = get_args(Part)
ClientKind = Literal["produce", "consume"]


@dataclass(frozen=True, slots=True)
class IsrShrinks:
    """How often one broker took replicas out of the ISR of partitions that it leads; None without readings.

    A counter that goes back has begun again with its broker, at 0.
    """

    host: str
    shrinks: float | None
    longest_gap_s: float | None


@dataclass(frozen=True, slots=True)
class IsrMeasures:
    """The ISR over the move. `partitions` were polled before it; `polls` is the fewest looks at one of them since.

    `smaller` has each that was seen with fewer replicas in sync than before, in order of time: when, which, how many
    then and before. `lagging` has each with a replica of before the move that was not in sync: when, and which.
    `longest_gap_s` is the longest time without a look at one partition.
    """

    hosts: tuple[IsrShrinks, ...]
    partitions: int
    polls: int
    longest_gap_s: float | None
    smaller: tuple[tuple[float, str, float, float], ...]
    lagging: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class StallMeasures:
    """A move that was noticed to be stuck, at `noticed_s`, because its lag had not fallen for `seconds`.

    `lag_before` is the lowest lag read since the move's start until that time began (or the first one), `lag_since`
    the lowest since then; `lowest_s` is when the lowest of all was read first, `LAG_SETTLED_S` after the start at the
    earliest: what is read sooner may be a lag from before the move.
    `raised_s` is when the throttle was raised, `raised_to` the quota in force from then on.
    """

    noticed_s: float
    seconds: float | None
    lag_before: float | None
    lag_since: float | None
    lowest_s: float | None
    raised_s: float | None
    raised_to: float | None


@dataclass(frozen=True, slots=True)
class ClientView:
    """What all clients of a kind saw in one part of the run; latencies in microseconds.

    Quantiles are exact of the merged buckets: the highest value of the bucket in which the quantile lies. `silence_s`
    is the longest time for which one client's count (acknowledged or read) did not grow, from 1 Hz readings.
    """

    kind: ClientKind
    part: Part
    records: int
    p50_us: float | None
    p99_us: float | None
    p999_us: float | None
    silence_s: float | None


KINDS: tuple[ClientKind, ...] = get_args(ClientKind)
LAG_SETTLED_S = 1.5


@dataclass(frozen=True, slots=True)
class NicUsage:
    """TCP payload on a broker's data NIC over the whole move, whatever it was: its mean, and the highest second."""

    host: str
    direction: Direction
    mean_bytes_per_s: float | None
    peak_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Burden:
    """From the move's start until it was done.

    `most_in_flight` partitions were being reassigned at once. `under_min_isr_s` is for how long, from look to look, at
    least one listed partition had fewer replicas in sync than `min.insync.replicas`; `lowest_isr` the fewest that one
    had. None without a poll.
    """

    most_in_flight: float | None
    nics: tuple[NicUsage, ...]
    under_min_isr_s: float | None
    lowest_isr: float | None


LISTED_METRIC = "move.listed"
"""How many partitions of the plan the controller listed, look by look."""


@dataclass(frozen=True, slots=True)
class Rests:
    """`count` rests of `total_s` together; the looks were at most `gap_s` apart.

    A rest lasts from the last look at which something was listed to the first at which something is again: that is more
    than it really took, by up to two looks.
    """

    count: int
    total_s: float
    gap_s: float | None

    @property
    def mean_s(self) -> float:
        """Return seconds of a rest on average; 0 without one."""
        return self.total_s / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class NicTotals:
    """What a data NIC counted from the last reading before the move to the first after its end, which covers
    `covered_s`; and the rate at which it counted before, with the load alone."""

    host: str
    direction: Direction
    bytes: float | None
    covered_s: float | None
    before_bytes_per_s: float | None
    longest_gap_s: float | None
    next_bytes: float = 0.0
    """What it counted from there to its next reading. Another host's NIC was read up to a reading later."""


@dataclass(frozen=True, slots=True)
class StoreRequests:
    """Requests of one kind that the object store counted over the same time."""

    operation: str
    count: float


@dataclass(frozen=True, slots=True)
class RelocationMeasures:
    """Everything measured of it.

    `longest_ack_us` is the longest that a record waited for its acknowledgement, from when it was due, during the move.
    `p99_before_us` is the highest 99th percentile of acknowledgements of any `P99_WINDOW_S` before it; `p99_back_s`
    when the last such window ended that was above `P99_BACK` times it, 0 when there was none, None when its
    end was not seen.
    `p99_never`: all windows of the first `P99_WITHIN_S` after the move were above, and enough were watched that this is
    no chance (`P99_CHANCE`).
    While a consumer read from the beginning (`cold.started` to `cold.done`) the brokers read `device_bytes` from their
    devices, and `store_bytes` left the object store.
    """

    nics: tuple[NicTotals, ...]
    requests: tuple[StoreRequests, ...] | None
    requests_gap_s: float | None
    longest_ack_us: float | None
    p99_before_us: float | None
    p99_back_s: float | None
    p99_never: bool = False
    device_bytes: float | None = None
    store_bytes: float | None = None


P99_WINDOW_S = 5
"""Seconds of acknowledgements of which one 99th percentile is taken: in one second, 1 % is a few records."""
P99_BACK = 1.1
"""So many times what it was before the move is as quick as before: without a move, too, one such window differs from
the next by some percent, and *never above the highest of a few before* would be luck."""
P99_WITHIN_S = 20
"""Seconds after the move and its last late acknowledgement in which p99 has to be as before in one window at least:
four windows that share no second, without which chance is not excluded."""
P99_CHANCE = 0.02
"""Without a change the windows before and after a move come in any order: that all of *m* after it lie above all of
*n* before it has the chance 1 ÷ C(m + n, n). With four of each it is 1 in 70."""
Side = Literal["leader", "follower"]


@dataclass(frozen=True, slots=True)
class NicPayload:
    """TCP payload on a host's data NIC over the steady part, from its byte counters (Ethernet's framing taken off)."""

    host: str
    direction: Direction
    payload_bytes_per_s: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class QuotaPolls:
    """What one broker said its quota was during the move; `different` polls said something else than the phase's.

    `longest_gap_s` is the longest time without a poll within a phase. `unlisted` polls said that its topics' lists lack
    replicas that were throttled; none also for a run that was recorded before lists were polled. Both have when, and
    what was said: the quota, or how many replicas lack.
    """

    host: str
    side: Side
    polls: int
    longest_gap_s: float | None
    different: tuple[tuple[float, float], ...]
    unlisted: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Conservation:
    """Bytes on a host's data NIC over the move and the control transfer, and without overhead in logs fed through it.

    None where a part was not sampled, as `client_bytes`, the part of clients. `background_bytes` is the most that other
    traffic may have added meanwhile; see `background`.
    """

    host: str
    direction: Direction
    nic_bytes: float | None
    log_bytes: float | None
    client_bytes: float | None
    background_bytes: float


@dataclass(frozen=True, slots=True)
class ControlTransfer:
    """The unthrottled control transfer into one host while the throttle was in force.

    `with_throttled_bytes` is what control and throttled logs together grew by while both were copied,
    `beside_throttled_bytes` what the control's grew by in that time.
    """

    host: str
    leaders: tuple[str, ...]
    total_bytes: float
    peak_bytes_per_s: float | None
    longest_gap_s: float | None
    with_throttled_bytes: float | None = None
    beside_throttled_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """The machine's load over the move, fractions of all cores; maxima are means over one quota window.

    `limit_window_max` is a fraction of the CPU quota in which the testbed ran; None without one. `others_window_max` is
    what brokers and controllers did not use; None where no reading says what they used.
    """

    longest_gap_s: float | None = None
    busy_mean: float | None = None
    busy_window_max: float | None = None
    steal_window_max: float | None = None
    limit_window_max: float | None = None
    others_window_max: float | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """What all brokers spent on a move, from its start until it was done; None is not known of one of them.

    `grown_bytes` is what their logs grew by: what moved, and what clients wrote. `cpu_s` is the CPU time of their JVMs.
    `written_bytes` went to devices. `follower_fetches` includes those of the metadata log.
    `metadata_records` includes those that the controller appends when nothing happens: one each half second.
    `connections_per_s` are those that the brokers' hosts began to open, without the agents'.
    """

    grown_bytes: float
    cpu_s: float | None
    written_bytes: float | None
    follower_fetches: float | None
    metadata_requests_per_s: float | None
    metadata_records: float | None
    connections_per_s: float | None


@dataclass(frozen=True, slots=True)
class StepObservation:
    """Of one expectation (its step's place, its own): when a state as wanted was in force first; None: never.

    `last` is the state that was in force at the end of the span; None when the log has none of the partition.
    `never_came` follows from the order of the log alone, without any clock: from the step on there is no such state,
    and none can follow.
    """

    step: int
    expectation: int
    us: int | None
    last: State | None
    never_came: bool = False


@dataclass(frozen=True, slots=True)
class PollAgreement:
    """What one request answered Admin clients: how often something new, and how much of it the log did not have yet.

    The log has none of the `unknown` answers at any time.
    """

    kind: str
    answers: int
    unlike: int
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class StepMeasures:
    """Everything measured of a run of steps."""

    found: tuple[StepObservation, ...]
    polled: tuple[PollAgreement, ...]


@dataclass(frozen=True, slots=True)
class MoveMeasures:
    """Everything measured of one move. `started_us` is None when no `move.started` was recorded; in a run of steps it
    is when the first step began.

    `throttled_s` is from the start until listed bytes stopped growing, `done_s` until `move.done`; `moved_s` until
    either that or until no partition was being reassigned, whichever came first. `watched_s` is until the last sample.
    `kip73_ratio` is `throttled_s` over KIP-73's estimate `kip73_s`. `rates` are those of the whole move. `left` and
    `back` are the hosts whose brokers were restarted and came back meanwhile. `rests` are those of a move
    whose list was polled. `costs` are those of a move that was done and whose logs are on disks.
    """

    started_us: int | None = None
    throttled_s: float | None = None
    done_s: float | None = None
    kip73_s: float = 0.0
    kip73_ratio: float | None = None
    rates: tuple[HostRates, ...] = ()
    quotas: tuple[QuotaPolls, ...] = ()
    conservation: tuple[Conservation, ...] = ()
    controls: tuple[ControlTransfer, ...] = ()
    load: MachineLoad = MachineLoad()
    moved_s: float | None = None
    watched_s: float | None = None
    phases: tuple[PhaseMeasures, ...] = ()
    nics: tuple[NicPayload, ...] = ()
    isr: IsrMeasures | None = None
    stuck: StallMeasures | None = None
    clients: tuple[ClientView, ...] = ()
    burden: Burden | None = None
    left: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    rests: Rests | None = None
    steps: StepMeasures | None = None
    relocation: RelocationMeasures | None = None
    costs: Costs | None = None

    def seen_by(self, kind: ClientKind, part: Part) -> ClientView | None:
        """Return what clients of a kind saw in one part of the run; None without such clients."""
        return next((view for view in self.clients if (view.kind, view.part) == (kind, part)), None)
