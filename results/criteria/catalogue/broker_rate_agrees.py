"""The byte-rate by which the broker throttles itself agrees with the growth of the logs."""

from results.contract.move import Move
from results.contract.verdict import Finding, Verdict
from results.criteria.batching import in_steps
from results.criteria.criterion import RATES, Criterion, has_move
from results.criteria.findings import gap_text, missing_data, of_broker_direction
from results.criteria.measures import HostRates, MoveMeasures
from results.criteria.model import responses
from results.criteria.quantities import percent

KAFKA_TOLERANCE = 0.05
KAFKA_POLLS = 5


def judge_kafka(measures: MoveMeasures, move: Move) -> list[Finding]:
    """The byte-rate by which the broker throttles itself agrees with the growth of the logs."""
    return [_kafka(r, move) for r in measures.rates] or [
        missing_data("broker-rate-agrees", "the broker's byte-rate agrees", measures, ("log.bytes",))
    ]


def kafka_excess(rates: HostRates, move: Move) -> float:
    """By which part of the true rate Kafka's own may lie above what the log grew by, and below it.

    Its oldest sample begins with a response, whose bytes count although the time before it does not: n + 1
    responses are divided by the time of n. That is one response per fetcher more than flowed, over the 10 s (the
    window without its youngest sample) that the retained samples span at least. And the log grows by whole responses,
    too: over the same 11 s by one more than flows on average.
    """
    rate = rates.steady.mean_bytes_per_s if rates.steady else move.quota_bytes_per_s
    spanned_s = move.window_s - move.sample_s
    return responses(move, rates.host, rates.direction) / (spanned_s * rate) if rate > 0 and spanned_s > 0 else 0.0


def _kafka(rates: HostRates, move: Move) -> Finding:
    excess = kafka_excess(rates, move)
    side = "leader" if rates.direction == "transmit" else "follower"
    metric = f"broker.{side}_replication.byte_rate"
    ratio = rates.kafka_ratio
    verdict: Verdict = "inconclusive"
    if gap := gap_text(rates.longest_gap_s):
        why = gap
    elif ratio is None or rates.kafka_polls < KAFKA_POLLS:
        why = f"{metric} has {rates.kafka_polls} samples in the steady part; {KAFKA_POLLS} are needed"
    else:
        verdict = "pass" if abs(ratio - 1) <= KAFKA_TOLERANCE + excess else "fail"
        why = f"median of {rates.kafka_polls} samples; Kafka says {ratio:.3f} of the log growth before each"
    return of_broker_direction(
        "broker-rate-agrees",
        rates,
        "Kafka's own byte-rate = log growth",
        verdict,
        why,
        observed=ratio,
        unit="of log growth",
        tolerance=f"± {percent(KAFKA_TOLERANCE + excess)}",
        series=(metric, "log.bytes"),
    )


CRITERION: Criterion[MoveMeasures] = Criterion(
    name="broker-rate-agrees",
    title="Kafka's own byte-rate agrees",
    section=RATES,
    measure=lambda run: run.measures,
    judge=lambda run, measures: judge_kafka(measures, run.move),
    needs=has_move,
    rests_on_preconditions=True,
    skips=in_steps(
        "Kafka divides by the time since its oldest sample began: after a rest that is not the time the logs grew in"
    ),
    catches="A broker that measures another rate than the one it sends.",
)
