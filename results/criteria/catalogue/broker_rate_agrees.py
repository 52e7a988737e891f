"""The byte-rate by which the broker throttles itself is what its sensor should read of logs that grow as they did."""

import math

from results.contract.move import Move
from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.batching import where_sent
from results.criteria.criterion import RATES, Criterion
from results.criteria.findings import finding, gap_text, missing_data, times_power
from results.criteria.host_rates import HostRates, SensorPart
from results.criteria.measures import MoveMeasures
from results.criteria.model import responses, written_unseen
from results.criteria.phase_directions import BACKOFF_S, WAIT_S, bottleneck_directions
from results.criteria.quantities import SECOND_S, percent
from results.criteria.rate_measures import KAFKA_POLLS

UNEVEN_S = 0.1
"""By how much a collection, or a busy core, moves responses between two readings at least (standard deviation)."""
DEVIATIONS = 4.0
PART_DEVIATIONS = 5.0
"""Of a part, which is the furthest from its prediction of some thirty."""
UNCOUNTED = 0.03
"""Most of a response that the log does not take, where no counter tells: measured with batches of 64 kB."""


def judge_kafka(measures: MoveMeasures, move: Move, *, parts: bool = True) -> list[Finding]:
    """Judge whether the byte-rate by which the broker throttles itself agrees with the growth of the logs.

    Only where the quota binds. Elsewhere no throttle acts on the byte-rate, and responses come as other brokers let
    them: unevenly, so that the readings say less than their tolerance. With `parts` each quota window of readings is
    judged as well, and how they fade after the copy; not of a move that rests now and then.
    """
    binding = {(end.rates.host, end.rates.direction) for end in bottleneck_directions(measures, move)}
    judged = [each for each in measures.rates if (each.host, each.direction) in binding]
    return [_kafka(each, move, parts) for each in judged] or [
        missing_data("broker-rate-agrees", "the broker's byte-rate agrees", measures, ("log.bytes",))
    ]


def unknown_s(rates: HostRates, move: Move) -> float:
    """Return by how many seconds of bytes one reading of a healthy sensor may be off: a standard deviation.

    Readings do not say where between two of them a response came. So the ends of each sum are off by a response's
    spacing, evenly distributed, and by what a second's bytes vary.
    """
    spacing_s, uneven_s = move.response_max_bytes / rates.kafka.bytes_per_s, UNEVEN_S
    if move.fetch == "default":
        spacing_s = max(spacing_s, BACKOFF_S + WAIT_S)
    elif rates.steady and rates.steady.variation:
        uneven_s = max(UNEVEN_S, rates.steady.variation * SECOND_S)
    return math.sqrt(spacing_s**2 / 6 + uneven_s**2)


def sensor_tolerance(rates: HostRates, move: Move, part: SensorPart | None = None) -> float:
    """Return how far the mean of a healthy sensor's readings may lie from its prediction, as part of it.

    The sum of a sensor is divided by `spanned_s` at least. Without a `part` that is of all readings.
    """
    kafka = rates.kafka
    if kafka.bytes_per_s <= 0 or kafka.polls <= 0:
        return math.inf
    found, deviations = (part, PART_DEVIATIONS) if part else (SensorPart(1.0, kafka.polls, kafka.spread), DEVIATIONS)
    off_s = unknown_s(rates, move) / math.sqrt(found.polls)
    return found.spread + deviations * off_s / (kafka.spanned_s * found.share)


def paired(rates: HostRates, move: Move) -> float:
    """Return by how much a sensor of several fetchers may read more than predicted, as part of it; 0 for one fetcher.

    Fetchers that the same sensor holds back go on at the same time. Their responses come together, as one of their
    joint size, and a sample that begins with them has as much more than its share.
    """
    more = max(0.0, responses(move, rates.host, rates.direction) - move.response_max_bytes)
    return more / (rates.kafka.spanned_s * rates.kafka.bytes_per_s) if rates.kafka.ratio is not None else 0.0


def _kafka(rates: HostRates, move: Move, parts: bool) -> Finding:
    within = sensor_tolerance(rates, move)
    more = paired(rates, move) + (UNCOUNTED if rates.counted is None else 0.0)
    less = 0.0
    if rates.kafka.ratio is not None:
        copied = rates.kafka.bytes_per_s * rates.kafka.polls * move.sample_s
        less = written_unseen(move, rates.host, rates.direction) / copied
        within += less
    above = within + more
    side = "leader" if rates.direction == "transmit" else "follower"
    metric = f"broker.{side}_replication.byte_rate"
    ratio = rates.kafka.ratio
    verdict: Verdict = "inconclusive"
    if gap := gap_text(rates.longest_gap_s):
        why = gap
    elif ratio is None:
        why = f"{metric} has {plural(rates.kafka.polls, 'sample')} in the steady part; {KAFKA_POLLS} are needed"
    else:
        samples = plural(rates.kafka.polls, "sample")
        why = f"mean of {samples}; Kafka says {ratio:.3f} of what its sensor should read of the logs"
        wrong = _wrong_part(rates, move, more, less) if parts else ""
        verdict = "pass" if -within <= ratio - 1 <= above and not wrong else "fail"
        why += f"; {wrong}" if wrong else ""
    return finding(
        "broker-rate-agrees",
        "Kafka's own byte-rate = its sensor's reading of the log growth",
        verdict,
        why,
        host=rates.host,
        direction=rates.direction,
        observed=ratio,
        unit="of the prediction",
        tolerance=f"- {percent(within)}, + {percent(above)}" if ratio is not None else "none",
        series=(metric, "log.bytes"),
        power=times_power(ratio / (1 - within), "the bytes that the broker records") if ratio and within < 1 else None,
    )


def _wrong_part(rates: HostRates, move: Move, more: float, less: float) -> str:
    """Return what is said of a part of the readings that disagrees; empty without any."""
    for part, when in (
        (rates.kafka.worst, f"{move.window_s:g} s of them"),
        (rates.kafka.ended, "when the copy has ended"),
    ):
        if part is None:
            continue
        within = sensor_tolerance(rates, move, part) + less
        if not -within <= part.ratio - 1 <= within + more:
            return f"{when} {part.ratio:.3f}, with ± {percent(within)}"
    return ""


CRITERION = Criterion(
    name="broker-rate-agrees",
    title="Kafka's own byte-rate agrees",
    section=RATES,
    judge=lambda run: where_sent(judge_kafka(run.measures, run.move, parts=not run.batched), run),
    rests_on_preconditions=True,
    catches="A broker that measures another rate than the one it sends, for a time, or over another window.",
    smallest="2 % of the bytes, on either side",
)
