"""The clocks of all machines of a run agree: windows over a host's samples begin and end at times of the driver."""

from collections.abc import Sequence

from results.contract.clocks import ClockReading
from results.contract.texts import plural
from results.contract.verdict import Finding
from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move, has_steps
from results.criteria.findings import finding
from results.criteria.quantities import READING_S

NAME = "clocks-agree"
BOUND_S = READING_S
"""The runner's clock says when a move begins and ends, and each host's clock when a sample was read. A window may be
shorter than the quota's by the time of one reading. Clocks that differ by more put a reading into another window."""
EXPECTED = f"clocks of the machines differ by at most {BOUND_S * 1000:g} ms, before and after the run"


def judge_agreement(readings: Sequence[ClockReading]) -> list[Finding]:
    """Return one finding for each reading that is too far off, or was not measured; one for all when none is."""
    wrong = [_wrong(each) for each in readings if each.most_s is None or each.most_s > BOUND_S]
    if wrong:
        return wrong
    most = max(readings, key=lambda each: each.most_s or 0.0)
    machines = plural(len({each.machine for each in readings}), "other machine")
    why = (
        f"{plural(len(readings), 'reading')} of {machines}; the largest offset is "
        f"{(most.offset_s or 0.0) * 1000:+.1f} ± {most.unsure_s * 1000:.1f} ms, of {most.machine} {most.when} the run"
    )
    return [finding(NAME, EXPECTED, "pass", why, observed=most.most_s, unit="s", series=("manifest.clocks",))]


def _wrong(reading: ClockReading) -> Finding:
    if reading.offset_s is None:
        why = f"{reading.when} the run the clock of machine {reading.machine} was not measured: {reading.why}"
    else:
        why = (
            f"{reading.when} the run the clock of machine {reading.machine} was {reading.offset_s * 1000:+.1f} "
            f"± {reading.unsure_s * 1000:.1f} ms from this machine's: samples of its hosts fall into other windows"
        )
    return finding(NAME, EXPECTED, "inconclusive", why, observed=reading.most_s, unit="s", series=("manifest.clocks",))


CRITERION = Criterion(
    name=NAME,
    title="Clocks of the machines agree",
    section=PRECONDITIONS,
    judge=lambda run: judge_agreement(run.manifest.clocks),
    needs=lambda run: (has_any_move(run) or has_steps(run)) and bool(run.manifest.clocks),
    by_name=False,
    about_machine=True,
    catches="Machines whose clocks are not synchronised.",
)
