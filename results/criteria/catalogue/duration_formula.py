"""On disk a move takes as long as the formula, when the NIC is the bottleneck; in S3 less."""

from results.contract.verdict import Finding, Verdict
from results.criteria.catalogue.nic_conservation import CONSERVATION_TOLERANCE
from results.criteria.catalogue.s3_seconds import late_seconds, most_seconds
from results.criteria.criterion import RATES, Criterion, has_relocation, old_broker_killed
from results.criteria.findings import finding, times_power
from results.criteria.quantities import percent
from results.criteria.relocation_measures import formula, nic_share
from results.criteria.run_view import RunView

NIC_FULL = 0.85
"""From this mean share of its busiest NIC on a move is called bound by it: below it something else took the time."""
DISK_TOOK = 1.1
"""What a healthy copy of a log on disk took, of log size ÷ NIC, in three sizes up to 3 GB (docs/measurements/s3.md)."""


def _judge(run: RunView) -> Finding:
    """Return the finding. Nothing is sooner than what lay on disks can have crossed the NIC."""
    manifest, asked, measures = run.manifest, run.relocation, run.measures
    verdict: Verdict = "inconclusive"
    low, seconds = 0.0, measures.done_s
    whole, least = formula(manifest, asked, whole=True), formula(manifest, asked, whole=False)
    share, expected = nic_share(manifest, measures), "log size ÷ NIC"
    if seconds is None:
        why = "the move was not seen to be done"
    elif whole is None or least is None:
        why = "a NIC or a log was not measured: there is no formula"
    else:
        times = f"{seconds:.1f} s; the whole log ÷ NIC is {whole:.1f} s, what lay on disks {least:.1f} s"
        low = least * (1 - CONSERVATION_TOLERANCE)
        if asked.storage == "disk":
            expected = f"{whole:.1f} s, or more where clients use the NIC as well"
            if seconds < low:
                verdict, why = "fail", f"{times}: that is faster than the NIC"
            elif share is None or share < NIC_FULL:
                seen = "not known" if share is None else f"used to {percent(share)}"
                why = f"{times}; the busiest NIC was {seen}: it did not limit the move, so the formula does not apply"
            else:
                verdict, why = "pass", f"{times}; the busiest NIC was used to {percent(share)}"
        else:
            expected = f"{least:.1f} s or more, and less than {whole:.1f} s"
            verdict, why = "pass" if low <= seconds < whole else "fail", times
            most = most_seconds(asked, DISK_TOOK * least) + late_seconds(run)
            if whole <= seconds <= most:
                verdict, why = "inconclusive", f"{times}: a healthy move of this log may take {most:.1f} s"
    return finding(
        "duration-formula",
        expected,
        verdict,
        why,
        observed=seconds,
        unit="s",
        power=times_power(seconds / low, "as fast") if seconds and low else None,
        tolerance=f"- {percent(CONSERVATION_TOLERANCE)}",
        series=("events", "manifest.nics", "manifest.relocation"),
    )


CRITERION = Criterion(
    name="duration-formula",
    title="As long as log size ÷ NIC",
    section=RATES,
    judge=lambda run: [_judge(run)],
    # Where the old broker was killed its session has to end first, so the time says nothing about the data.
    needs=lambda run: has_relocation(run) and not old_broker_killed(run),
    rests_on_preconditions=True,
    of_nic_bytes=True,
    explains_time=True,
    catches="A copy in less time than its NICs need, or a move in an object store that takes as long as the whole log.",
    smallest="3 % faster than the NIC",
)
