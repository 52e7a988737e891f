"""A night: every case of a suite run once or, where the variance needs it, more often; then the store is judged.

It is a series like any other (its journal, canaries, budget, resuming); only that its variants are scenarios, each of
which is compared with its own past, by `results/nights`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from results.nights import state as states
from results.nights.state import State
from results.nights.values import scenario_id
from results.series.decision import Rule
from results.store import Store
from testbed.runner.journal import opened
from testbed.runner.limits import NIGHTLY
from testbed.runner.run import Progress, begin, new_series, resume
from testbed.runner.series import Series, SoFar, so_far
from testbed.runner.variant import Resolved, Variant, resolve
from testbed.suites.suite import Case, find_suite

MORE = 3
"""So often a scenario is run in a night when a change of `Rule.noisy` would be missed otherwise."""


@dataclass(frozen=True, slots=True)
class Made:
    """The runs of a night: `problems` name those that could not be made; `complete` when nothing is left to resume."""

    series: Series
    state: SoFar
    why_ended: str
    complete: bool
    scenarios: frozenset[str] = frozenset()
    """The ids of what was to be run."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Cases without a run, and why."""
        slots = {slot.index: slot.variant for slot in self.series.slots}
        last = {failure.slot: failure.why for failure in self.state.failures}
        missing = Counter(
            (label, last.get(index, self.why_ended)) for index, label in slots.items() if index not in self.state.ran
        )
        return tuple(
            f"{label} was not run{f' {count} times' if count > 1 else ''}: {why}"
            for (label, why), count in missing.items()
        )


def variants(
    cases: Sequence[Case], profile: str, kafka: str | None, repeats: Callable[[Resolved], int]
) -> list[Variant]:
    """A variant for each run of the night: cases in order, repeated ones once more after all others. Raises
    `UsageError` for what cannot be run."""
    once = [Variant(case.name, case.experiment, profile, case.settings, kafka, case.topology) for case in cases]
    wanted = {variant.label: repeats(resolve(variant)) for variant in once}
    most = max(wanted.values(), default=1)
    again = [
        replace(variant, label=f"{variant.label}, {number}")
        for number in range(2, most + 1)
        for variant in once
        if wanted[variant.label] >= number
    ]
    return [*once, *again]


def needed(known: Iterable[State], more: int = MORE, noisy: float = Rule().noisy) -> Callable[[Resolved], int]:
    """How often a scenario is run: `more` times when in any of its series a change of `noisy` would be missed."""
    wild = {each.scenario for each in known if (each.said.detectable or 0.0) > noisy}

    return lambda wanted: more if scenario_of(wanted) in wild else 1


def scenario_of(wanted: Resolved) -> str:
    """The id by which a store's nights know the runs of a variant."""
    return scenario_id(wanted.experiment.name, {**wanted.settings, "topology": wanted.topology.name})


def scenario_ids(series: Series) -> frozenset[str]:
    """The scenarios that a night runs."""
    return frozenset(scenario_of(resolve(variant)) for variant in series.variants)


def new_night(
    suite: str,
    profile: str,
    kafka: str | None,
    store: str | None,
    seed: int,
    only: Sequence[str] = (),
    repeats: int | None = None,
) -> Series:
    """A night that can be run: each case `repeats` times, all of them before any once more; without, as often as the
    variance needs. Raises `UsageError`."""
    cases = find_suite(suite).cases(profile, only)
    planned = variants(cases, profile, kafka, lambda _wanted: 1)
    if repeats is not None:
        return new_series(NIGHTLY, planned, repeats, seed, store=store)
    asked = new_series(NIGHTLY, planned, 1, seed, store=store)
    repeated = variants(cases, profile, kafka, needed(states.load(Store.open(asked.store)).values()))
    return asked if len(repeated) == len(planned) else new_series(NIGHTLY, repeated, 1, seed, store=store)


def run_night(asked: Series | None, series_id: str | None, budget_s: float | None, progress: Progress) -> Made:
    """Make the runs of a new night, or go on with one."""
    # Looked up before: a build or a file that is named may be gone when the night is over.
    if series_id is not None:
        with opened(series_id) as journal:
            scenarios = scenario_ids(journal.series)
        result = resume(series_id, None, NIGHTLY, budget_s, progress, stop_early=False)
    else:
        assert asked is not None
        scenarios = scenario_ids(asked)
        result = begin(asked, budget_s, progress, stop_early=False)
    with opened(result.series.id) as journal:
        so = so_far(journal.entries)
    return Made(result.series, so, result.why_ended, result.complete, scenarios)
