"""The byte-rate by which the broker throttles itself is what its sensor should read of logs that grow as they did."""

import math

from results.contract.move import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.batching import where_sent
from results.criteria.criterion import RATES, Criterion, has_move
from results.criteria.findings import gap_text, missing_data, of_broker_direction, times_power
from results.criteria.measures import HostRates, MoveMeasures
from results.criteria.model import written_unseen
from results.criteria.phase_directions import BACKOFF_S, WAIT_S, bottleneck_directions
from results.criteria.quantities import SECOND_S, percent
from results.criteria.rate_measures import KAFKA_POLLS

UNEVEN_S = 0.1
"""By how much a collection, or a busy core, moves responses between two readings at least (standard deviation)."""
DEVIATIONS = 4.0
UNCOUNTED = 0.03
"""Most of a response that the log does not take, where no counter tells: measured with batches of 64 kB."""


def judge_kafka(measures: MoveMeasures, move: Move) -> list[Finding]:
    """Judge whether the byte-rate by which the broker throttles itself agrees with the growth of the logs.

    Only where the quota binds. Elsewhere no throttle acts on the byte-rate, and responses come as other brokers let
    them: unevenly, so that the readings say less than their tolerance.
    """
    binding = {(end.rates.host, end.rates.direction) for end in bottleneck_directions(measures, move)}
    judged = [each for each in measures.rates if (each.host, each.direction) in binding]
    return [_kafka(each, move) for each in judged] or [
        missing_data("broker-rate-agrees", "the broker's byte-rate agrees", measures, ("log.bytes",))
    ]


def sensor_tolerance(rates: HostRates, move: Move) -> float:
    """Return how far the mean of a healthy sensor's readings may lie from its prediction, as part of it.

    Readings do not say where between two of them a response came. So the ends of each sum are off by a response's
    spacing, evenly distributed, and by what a second's bytes vary. The sum is divided by `spanned_s` at least.
    """
    kafka = rates.kafka
    if kafka.bytes_per_s <= 0 or kafka.polls <= 0:
        return math.inf
    spacing_s, uneven_s = move.response_max_bytes / kafka.bytes_per_s, UNEVEN_S
    if move.fetch == "default":
        spacing_s = max(spacing_s, BACKOFF_S + WAIT_S)
    elif rates.steady and rates.steady.variation:
        uneven_s = max(UNEVEN_S, rates.steady.variation * SECOND_S)
    off_s = math.sqrt(spacing_s**2 / 6 + uneven_s**2)
    return kafka.spread + DEVIATIONS * off_s / (kafka.spanned_s * math.sqrt(kafka.polls))


def _kafka(rates: HostRates, move: Move) -> Finding:
    within = sensor_tolerance(rates, move)
    above = within + (UNCOUNTED if rates.refetched is None else 0.0)
    if rates.kafka.ratio is not None:
        copied = rates.kafka.bytes_per_s * rates.kafka.polls * move.sample_s
        within += written_unseen(move, rates.host, rates.direction) / copied
    side = "leader" if rates.direction == "transmit" else "follower"
    metric = f"broker.{side}_replication.byte_rate"
    ratio = rates.kafka.ratio
    verdict: Verdict = "inconclusive"
    if gap := gap_text(rates.longest_gap_s):
        why = gap
    elif ratio is None:
        why = f"{metric} has {rates.kafka.polls} samples in the steady part; {KAFKA_POLLS} are needed"
    else:
        verdict = "pass" if -within <= ratio - 1 <= above else "fail"
        why = f"mean of {rates.kafka.polls} samples; Kafka says {ratio:.3f} of what its sensor should read of the logs"
    return of_broker_direction(
        "broker-rate-agrees",
        rates,
        "Kafka's own byte-rate = its sensor's reading of the log growth",
        verdict,
        why,
        observed=ratio,
        unit="of the prediction",
        tolerance=f"- {percent(within)}, + {percent(above)}" if ratio is not None else "none",
        series=(metric, "log.bytes"),
        power=times_power(ratio / (1 - within), "the bytes that the broker records") if ratio and within < 1 else None,
    )


CRITERION: Criterion[MoveMeasures] = Criterion(
    name="broker-rate-agrees",
    title="Kafka's own byte-rate agrees",
    section=RATES,
    measure=lambda run: run.measures,
    judge=lambda run, measures: where_sent(judge_kafka(measures, run.move), run),
    needs=has_move,
    rests_on_preconditions=True,
    catches="A broker that measures another rate than the one it sends.",
    smallest="2 % of the bytes, on either side",
)
