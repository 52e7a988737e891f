"""A throttle below the in-sync replication traffic holds no replica in sync back."""

from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import FACTS, SLOW_CLIENTS, Criterion, has_move
from results.criteria.findings import finding, gap_text
from results.criteria.host_rates import HostRates, PhaseMeasures
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import GAP_S, rate


def _sent_in_sync(rates: HostRates, phase: PhaseMeasures) -> float | None:
    """Return what a leader sent to replicas in sync in a phase, in bytes/s; None of a receiver, or if it is not known.

    A leader whose followers were read in the phase, and got nothing for more than a gap, sent nothing.
    """
    if rates.direction != "transmit":
        return None
    if rates.all is not None:
        return rates.all.in_sync_bytes / rates.all.elapsed_s
    return None if phase.end_s - phase.begin_s <= GAP_S or gap_text(rates.longest_gap_s) else 0.0


def judge_in_sync(measures: MoveMeasures) -> Finding:
    """Judge whether a throttle below what is written times the replicas in sync holds none of these back."""
    lowest = min(measures.phases, key=lambda phase: phase.quota_bytes_per_s, default=None)
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if lowest is None or len({phase.quota_bytes_per_s for phase in measures.phases}) < 2:
        why = "the throttle was not seen to be lowered while data moved"
    else:
        # Bytes to new replicas say nothing: a response to each may be under way when the throttle is lowered.
        sent = {rates.host: each for rates in lowest.rates if (each := _sent_in_sync(rates, lowest)) is not None}
        host = max(sent, key=lambda each: sent[each], default=None)
        if host is None:
            why = "no leader's bytes were seen in that phase"
        else:
            observed = sent[host] / lowest.quota_bytes_per_s
            verdict = "pass" if observed > 1 else "fail"
            quota = rate(lowest.quota_bytes_per_s)
            why = f"{host} sent {rate(sent[host])} to replicas in sync under a quota of {quota}"
    expected = "replicas in sync take more than a throttle that is below what is written to them"
    return finding(
        "in-sync-unbounded", expected, verdict, why, observed=observed, unit="of the quota", series=("log.bytes",)
    )


CRITERION = Criterion(
    name="in-sync-unbounded",
    title="Replicas in sync are not held back",
    section=FACTS,
    judge=lambda run: [judge_in_sync(run.measures)],
    needs=lambda run: has_move(run) and not run.batched,
    rests_on_preconditions=True,
    # Replicas in sync take less as well when producers write less than declared, or no NIC or machine carries it.
    # `load-rate-sustained` does not count: a broker that holds its replicas back fills the buffers of its clients.
    excused_by=SLOW_CLIENTS,
    catches="A throttle that holds back replicas in sync.",
)
