"""The machine's tasks did not wait for memory long enough to lower a rate."""

from results.criteria.criterion import PRECONDITIONS, Criterion, has_any_move
from results.criteria.own_pressure import kafkas_memory
from results.criteria.standstill import judge_pressure, was_read

NAME, METRIC = "memory-pressure", "pressure.memory"

CRITERION = Criterion(
    name=NAME,
    title="Memory enough",
    section=PRECONDITIONS,
    judge=lambda run: judge_pressure(run, NAME, METRIC, "memory", kafkas_memory),
    kafkas_own=lambda run: bool(kafkas_memory(run)),
    needs=lambda run: has_any_move(run) and was_read(run, METRIC),
    by_name=False,
    about_machine=True,
    catches="A machine without free memory, which swaps or evicts what it needs.",
)
