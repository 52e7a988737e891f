"""The machine was not so busy, and lost not so much CPU time to other machines, that a rate would be lower."""

from results.contract.verdict import Finding, Verdict
from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move, has_move
from results.criteria.findings import finding
from results.criteria.measures import MachineLoad
from results.criteria.quantities import GAP_S, QUOTA_WINDOW_S, percent
from results.criteria.unfit import BUSY_HIGHEST, MACHINE_LOAD, STEAL_HIGHEST

OTHERS_HIGHEST = 1 - BUSY_HIGHEST
"""Where others use no more, Kafka has as much of the CPU as a machine that is idle enough leaves it at least."""


def kept_busy_by_kafka(load: MachineLoad) -> bool:
    """Return whether brokers and controllers alone kept the machine too busy.

    Nothing else disturbed what was measured then. The rates may be lower than a larger machine's, and are those of this
    Kafka all the same: a defect may burn the CPU.
    """
    busy, others, limit = load.busy_window_max, load.others_window_max, load.limit_window_max
    watched = load.longest_gap_s is not None and load.longest_gap_s <= GAP_S
    alone = others is not None and others <= OTHERS_HIGHEST and (load.steal_window_max or 0.0) <= STEAL_HIGHEST
    return watched and alone and busy is not None and busy > BUSY_HIGHEST and (limit is None or limit <= BUSY_HIGHEST)


def machine_idle(load: MachineLoad, window_s: float) -> Finding:
    """Judge the machine's load over any such window: busy at most 85 %, stolen at most 5 %."""
    window = f"{window_s:g} s"
    verdict: Verdict = "inconclusive"
    busy, steal = load.busy_window_max, load.steal_window_max
    if busy is None or steal is None or load.longest_gap_s is None:
        why = "the machine's load was not sampled"
    elif busy > BUSY_HIGHEST:
        cause = "the machine may have slowed the brokers down"
        if kept_busy_by_kafka(load):
            cause = f"Kafka did it, all others used at most {percent(load.others_window_max or 0.0)}"
        why = f"{percent(busy)} busy over {window}: {cause}"
    elif load.limit_window_max is not None and load.limit_window_max > BUSY_HIGHEST:
        limit = percent(load.limit_window_max)
        why = f"{limit} of the CPU quota used over {window}: the testbed ran in a limited container or service"
    elif steal > STEAL_HIGHEST:
        why = f"{percent(steal)} of the CPU was stolen over {window}: other machines disturbed this one"
    elif load.longest_gap_s > GAP_S:
        why = f"no load sample for {load.longest_gap_s:.1f} s"
    else:
        verdict = "pass"
        why = f"at most {percent(busy)} busy and {percent(steal)} stolen over any {window}"
    return finding(
        MACHINE_LOAD,
        f"at most {percent(BUSY_HIGHEST)} busy, {percent(STEAL_HIGHEST)} stolen over any {window}",
        verdict,
        why,
        observed=busy,
        unit="fraction",
        host="machine",
        series=("cpu.busy", "cpu.steal") if load.limit_window_max is None else ("cpu.busy", "cpu.quota", "cpu.steal"),
    )


CRITERION = Criterion(
    name=MACHINE_LOAD,
    title="Machine idle enough",
    section=PRECONDITIONS,
    judge=lambda run: [machine_idle(run.measures.load, run.move.window_s if has_move(run) else QUOTA_WINDOW_S)],
    needs=has_any_move,
    by_name=False,
    about_machine=True,
    kafkas_own=lambda run: kept_busy_by_kafka(run.measures.load),
    excuses_brokers=True,
    catches="A machine that slows the brokers down.",
)
