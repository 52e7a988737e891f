"""No replica that was in sync before the move leaves the ISR."""

from dataclasses import replace

from results.contract.move import RECORDED, Move
from results.contract.texts import counted, plural
from results.contract.verdict import Finding, Verdict
from results.criteria.cluster_measures import LAG_S, ShrinkCause, measure_isr
from results.criteria.criterion import BROKERS_UNRESTRAINED, FACTS, NOT_KAFKAS, Criterion
from results.criteria.findings import finding
from results.criteria.measures import IsrMeasures, MoveMeasures
from results.criteria.quantities import GAP_S, at
from results.criteria.run_view import RunView


def judge_isr(measures: MoveMeasures, move: Move) -> Finding:
    """Judge whether no replica left the ISR since the move began: by the brokers' own counts, and at any poll."""
    isr = measures.isr
    # Where each partition has one replica and no client writes, the brokers' own counts say everything.
    watched = move.inbound_bytes_per_s > 0 or any(f.kind == "in_sync" for f in move.flows)
    listed = {(f.topic, p) for f in move.flows if f.kind in RECORDED for p in f.partitions}
    verdict: Verdict = "inconclusive"
    observed: float | None = None
    if isr is None:
        why = "no move.started was recorded"
    elif shrunk := [(h.host, h.shrinks) for h in isr.hosts if h.shrinks]:
        observed = sum(times for _, times in shrunk)
        verdict = "fail"
        why = "; ".join(f"{host} took replicas out of ISRs {plural(round(times), 'time')}" for host, times in shrunk)
    elif isr.smaller:
        observed, verdict = float(len(isr.smaller)), "fail"
        when_s, partition, now, before = isr.smaller[0]
        alike = plural(len(isr.smaller), "partition")
        why = f"{partition} had {now:g} in sync at {at(when_s)}, {before:g} before; {alike} like it"
    elif isr.lagging:
        observed, verdict = float(len(isr.lagging)), "fail"
        when_s, partition = isr.lagging[0]
        why = f"a replica of {partition} of before the move was not in sync at {at(when_s)}; "
        why += f"{plural(len(isr.lagging), 'partition')} like it"
    elif missing := _isr_unseen(isr, len(listed) if watched else None):
        why = missing
    else:
        observed, verdict = 0.0, "pass"
        why = "no ISR shrank on any broker"
        if isr.partitions:
            why += f"; {counted(isr.partitions, 'partition', 'was')} polled {plural(isr.polls, 'time')} or more"
    return finding(
        "no-isr-shrink",
        "no replica that was in sync leaves the ISR",
        verdict,
        why,
        observed=observed,
        unit="shrinks",
        series=("broker.isr_shrinks", "isr.size", "isr.lagging"),
    )


def _isr_unseen(isr: IsrMeasures, listed: int | None) -> str | None:
    """Return what was not polled; with None as `listed` partitions need not be."""
    for host in isr.hosts:
        if host.shrinks is None:
            return f"{host.host} was not asked for its ISR shrinks from the move's start past its end"
        if host.longest_gap_s is None or host.longest_gap_s > GAP_S:
            return f"{host.host} was not asked for its ISR shrinks for {host.longest_gap_s or 0.0:.1f} s"
    if listed is None:
        return None
    if isr.partitions < max(1, listed):
        return f"the ISR of {isr.partitions} of {listed} listed partitions was polled before the move"
    if isr.polls < 1 or isr.longest_gap_s is None or isr.longest_gap_s > GAP_S:
        return f"the ISR of a partition was not polled for {isr.longest_gap_s or 0.0:.1f} s"
    return None


def _spared(run: RunView) -> list[Finding]:
    """Return the finding as if no replica had left an ISR since the machine was unfit."""
    measures, started = run.measures, run.measures.started_us
    if measures.isr is None or started is None:
        return [judge_isr(measures, run.move)]
    until = run.series.event_us("move.done") or run.series.last_us() or started
    lag = run.manifest.parameters.get("lag")  # `kip73-mixed-volume` sets `replica.lag.time.max.ms` to it
    cause = ShrinkCause(run.unfit, float(lag) if isinstance(lag, int | float) else LAG_S)
    isr = measure_isr(run.series, run.move, started, until, cause)
    return [judge_isr(replace(measures, isr=isr), run.move)]


CRITERION = Criterion(
    name="no-isr-shrink",
    title="No replica left the ISR",
    section=FACTS,
    judge=lambda run: [judge_isr(run.measures, run.move)],
    spared=_spared,
    rests_on_preconditions=True,
    # A leader counts how long a follower lags (`replica.lag.time.max.ms`) by its wall clock.
    # Of a busy CPU, `spared` knows whether Kafka was the cause.
    excused_by=(*NOT_KAFKAS, BROKERS_UNRESTRAINED),
    catches="A move during which a replica that was in sync leaves the ISR.",
)
