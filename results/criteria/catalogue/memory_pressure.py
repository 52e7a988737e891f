"""The machine's tasks did not wait for memory long enough to lower a rate."""

from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move
from results.criteria.own_pressure import kafkas_memory
from results.criteria.standstill import Pressure, judge_pressure, pressure, was_read

NAME, METRIC = "memory-pressure", "pressure.memory"

CRITERION: Criterion[Pressure] = Criterion(
    name=NAME,
    title="Memory enough",
    section=PRECONDITIONS,
    measure=lambda run: pressure(run, METRIC),
    judge=lambda run, found: judge_pressure(NAME, METRIC, "memory", found, kafkas_memory(run) if found.high else ""),
    kafkas_own=lambda run: bool(kafkas_memory(run)),
    needs=lambda run: has_any_move(run) and was_read(run, METRIC),
    by_name=False,
    catches="A machine without free memory, which swaps or evicts what it needs.",
)
