"""No JVM of a broker paused long enough to lower a rate beyond its tolerance, and no heap was full."""

from results.contract.texts import plural
from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move, killed_hosts
from results.criteria.findings import finding, gap_text
from results.criteria.quantities import percent, size
from results.criteria.run_view import RunView
from results.criteria.standstill import METRICS, MOST, OVER_S, JvmMeasures, jvm_measures, jvms_were_read, move_spans
from results.criteria.unfit import STEAL_HIGHEST

LEFT_HIGHEST = 0.9
"""Chosen: where every full collection leaves more of the old generation, the next one comes ten times as soon as in an
empty one."""
GROWN_LEAST = 0.1
"""Share of the old generation by which what is left must grow before growth is named as the cause."""


def judge_jvms(found: list[JvmMeasures], steal: float | None) -> list[Finding]:
    """Return one finding for each broker; `steal` is the highest share of CPU time that was stolen over a window.

    A broker whose readings are all of a shorter time than a quota window has none.
    """
    return [_broker(jvm, steal) for jvm in found if jvm.stopped is not None or not jvm.readings]


def _broker(jvm: JvmMeasures, steal: float | None) -> Finding:
    verdict: Verdict = "inconclusive"
    paused = jvm.stopped
    full = plural(jvm.full, "full collection")
    if paused is None:
        why = "its JVM was not read during the move"
    elif gap := gap_text(jvm.longest_gap_s):
        why = f"its JVM: {gap}"
    elif paused > MOST:
        of_it = f", {percent(jvm.collecting)} in collections" if jvm.collecting is not None else ""
        why = f"it stood still for {percent(paused)} of {OVER_S:g} s{of_it}; {full}: {cause(jvm, steal)}"
    elif jvm.left_share is not None and jvm.left_share > LEFT_HIGHEST:
        why = f"its heap stays full: {full}, each of which left {percent(jvm.left_share)} or more: {cause(jvm, steal)}"
    else:
        verdict = "pass"
        why = f"it stood still for at most {percent(paused)} of any {OVER_S:g} s; {full}"
    return finding(
        "jvm-pauses",
        f"stands still for at most {percent(MOST)} of any {OVER_S:g} s",
        verdict,
        why,
        observed=paused,
        unit="fraction",
        host=jvm.host,
        series=METRICS,
    )


def cause(jvm: JvmMeasures, steal: float | None) -> str:
    """Return the likely cause as far as the readings tell: Kafka, the settings or the machine."""
    left, most = jvm.left_bytes, jvm.most_bytes
    if most and len(left) > 2 and list(left) == sorted(left) and left[-1] - left[0] > GROWN_LEAST * most:
        return f"Kafka keeps more and more, {size(left[0])} to {size(left[-1])} of {size(most)} after full collections"
    if most and jvm.left_share is not None and jvm.left_share > 1 - 2 * GROWN_LEAST:
        return (
            f"the heap is too small for what the broker holds, {size(min(left))} of {size(most)} after full "
            "collections: fewer partitions, or a larger -Xmx"
        )
    if steal is not None and steal > STEAL_HIGHEST:
        return f"other machines took {percent(steal)} of the CPU, and a pause lasts longer without it"
    return "the readings do not show the cause"


def _measure(run: RunView) -> list[JvmMeasures]:
    dead = killed_hosts(run)
    return jvm_measures(run.series, [host for host in run.brokers if host not in dead], move_spans(run))


def _kafkas_own(run: RunView) -> bool:
    """Return whether pauses are those of these brokers with these settings: every JVM was read, no CPU was stolen."""
    steal = run.measures.load.steal_window_max
    read = all(jvm.stopped is not None and not gap_text(jvm.longest_gap_s) for jvm in _measure(run))
    return read and steal is not None and steal <= STEAL_HIGHEST


CRITERION = Criterion(
    name="jvm-pauses",
    title="Brokers do not stand still",
    section=PRECONDITIONS,
    judge=lambda run: judge_jvms(_measure(run), run.measures.load.steal_window_max),
    needs=lambda run: has_any_move(run) and jvms_were_read(run.series),
    by_name=False,
    kafkas_own=_kafkas_own,
    excuses_brokers=True,
    catches="A broker that collects garbage instead of sending.",
)
