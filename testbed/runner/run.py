"""The way in for every door: begin or resume a series, make its runs, have Spark confirm them, say what they say."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from results.compare import Rule, find_measure
from results.contract.store import Store, StoreError
from results.spark.session import session
from testbed.errors import TestbedError, UsageError
from testbed.experiments.reports import default_store, write_report
from testbed.experiments.runner import confirm
from testbed.runner.beside import keep_readings
from testbed.runner.chosen import COMPARING, default_measures
from testbed.runner.execute import Limits, execute
from testbed.runner.journal import Journal, created, opened
from testbed.runner.limits import fewest_pairs_to_tell, narrow_enough
from testbed.runner.outcome import Outcome, findings, mixed_software, not_made, outcome
from testbed.runner.schedule import Slot
from testbed.runner.series import Confirmed, Group, Series, SoFar, so_far
from testbed.runner.slots import Slots
from testbed.runner.variant import Variant, check_labels, resolve

Progress = Callable[[str], None]
Spare = Callable[[Series], Callable[[Slot, SoFar], bool]]
"""Of a series: whether nobody needs a slot's run any more, from what has been run so far."""


def needs_all(_series: Series) -> Callable[[Slot, SoFar], bool]:
    """Every slot is needed."""
    return lambda _slot, _state: False


@dataclass(frozen=True, slots=True)
class Result:
    """What a series came to; `complete` is False when `--resume` would go on with it. `problems` name the variants of
    which a run could not be made, and why."""

    series: Series
    outcome: Outcome
    why_ended: str
    complete: bool
    problems: tuple[str, ...] = ()


def new_series(
    door: str,
    variants: Sequence[Variant],
    repeats: int,
    seed: int,
    *,
    store: str | None = None,
    measure_names: Sequence[str] = (),
    threshold: float = Rule().threshold,
    groups: Sequence[Group] = (),
) -> Series:
    """A series that can be run: everything looked up once. Raises `UsageError` for what cannot."""
    check_labels(variants)
    variants = [replace(each, topology=lasting(each.topology), kafka=lasting(each.kafka)) for each in variants]
    grounds = tuple(resolve(variant).ground for variant in variants)
    if repeats < 1:
        raise UsageError(f"{repeats} repeats: at least 1 is needed")
    told = door not in COMPARING
    names = tuple(measure_names) or default_measures(door, variants)
    try:
        for name in names:
            if not (find_measure(name).compared or told):
                raise ValueError(f"{name} says nothing of better or worse, `testbed sweep` tells it: leave it out")
        Rule(threshold=threshold)
        location = Store.open(store or default_store()).location
    except (ValueError, StoreError) as error:
        raise UsageError(str(error)) from error
    identity = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{door}-{secrets.token_hex(3)}"
    return Series(identity, door, tuple(variants), repeats, seed, location, names, threshold, grounds, tuple(groups))


def lasting(text: str | None) -> str | None:
    """What is named, so that it is the same file or folder when the series is resumed from somewhere else."""
    return str(Path(text).absolute()) if text is not None and Path(text).exists() else text


def require_tellable(series: Series) -> None:
    """Raises `UsageError` when so few pairs could not be told from luck in so many comparisons."""
    paired = [part for part in series.parts if part.pairs]
    comparisons = sum(len(part.pairs) for part in paired) * len(series.measures)
    fewest = fewest_pairs_to_tell(comparisons)
    repeats = min((part.repeats for part in paired), default=fewest)
    if repeats < fewest:
        raise UsageError(
            f"{repeats} pairs: among {comparisons} comparisons no regression could be told from luck; "
            f"take at least {fewest} pairs, or fewer measures (--measure move-seconds)"
        )


def store_of(series_id: str) -> str:
    """The store of a series that is gone on with. Raises `UsageError`."""
    with opened(series_id) as journal:
        return journal.series.store


def begin(
    series: Series,
    budget_s: float | None,
    progress: Progress,
    *,
    stop_early: bool = True,
    spare: Spare = needs_all,
) -> Result:
    """Run a new series. Raises `TestbedError`; what was done until then is kept for `resume`."""
    with created(series) as journal:
        progress(f"series {series.id}: {len(series.slots)} runs; after an interruption: --resume {series.id}")
        return _go_on(journal, budget_s, progress, stop_early, spare)


def resume(
    series_id: str,
    asked: Series | None,
    door: str,
    budget_s: float | None,
    progress: Progress,
    *,
    stop_early: bool = True,
    spare: Spare = needs_all,
) -> Result:
    """Go on with a series. `asked`, if given, must ask for the same. Raises `UsageError` and `TestbedError`."""
    with opened(series_id) as journal:
        if journal.series.door != door:
            raise UsageError(f"{series_id} was begun by `testbed {journal.series.door}`; resume it with that command")
        different = journal.series.differences(asked) if asked is not None else []
        if different:
            raise UsageError(
                f"series {series_id} is another one; leave out what differs, or begin a new series:\n  "
                + "\n  ".join(different)
            )
        for variant, ground in zip(journal.series.variants, journal.series.grounds, strict=True):
            if resolve(variant).ground != ground:
                raise UsageError(
                    f"variant {variant.label}: the topology has changed since series {series_id} began; "
                    "put it back, or begin a new series"
                )
        return _go_on(journal, budget_s, progress, stop_early, spare)


def _go_on(journal: Journal, budget_s: float | None, progress: Progress, stop_early: bool, spare: Spare) -> Result:
    series = journal.series
    store = Store.open(series.store)

    def enough(state: SoFar) -> str | None:
        return narrow_enough(findings(series, state), series.threshold) if stop_early else None

    try:
        with Slots(series, store, progress) as slots:
            ended = execute(journal, slots, Limits(budget_s, enough, spare=spare(series)), progress)
    finally:  # an interrupted series may never be gone on with, and its runs are judged all the same
        keep_readings(store, so_far(journal.entries), progress)
    progress(ended.why)
    _confirm(journal, store, progress)
    state = so_far(journal.entries)
    if mixed := mixed_software(series, state):
        raise TestbedError(
            f"variant {mixed[0]} did not have the same Kafka in all runs of series {series.id}: what it names was "
            "built anew in between. Begin a new series"
        )
    return Result(series, outcome(series, state), ended.why, ended.complete, not_made(series, state))


def _confirm(journal: Journal, store: Store, progress: Progress) -> None:
    """Have Spark judge all new runs again, from the store, once nothing is measured any more; write their reports."""
    state = so_far(journal.entries)
    new = [ran.done.run_id for ran in state.ran.values() if ran.done.run_id not in state.confirmed]
    if not new:
        return
    with session() as spark:
        judgements = confirm(spark, store, new)
    for run_id in new:
        write_report(store, store.manifest(run_id), judgements[run_id])
    journal.append(Confirmed(tuple(new)))
    progress(f"{len(new)} runs judged again from the store, in Spark: the same verdicts")
