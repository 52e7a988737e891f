"""A night with Spark: it ingests new runs, judges every series on the workers, and stores the result.

However long the history is, little comes to the driver: what was learned of the noise, and one row a series. The row
holds what the series is and what was said of it.

Runs of a machine whose clock was ahead are left out until their time has come, and stop no series. `now` is by the
clock of the machine that judges. Where it is not known (None), everything is taken as it is dated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from results.contract.maintenance import locked
from results.contract.store import Store
from results.nights import state, values_table
from results.nights.bucket import iso, judge_bucket, learn_from, micros
from results.nights.ingest import ingest, table
from results.nights.judged_runs import LEARN_FROM, night_of
from results.nights.state import NEVER, SeriesState
from results.nights.values import SUMMED
from results.series.block import MOST_RUNS
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.judge import Judge
from results.series.noise_estimation import LearnedNoise, due

AHEAD = timedelta(hours=12)
"""Two machines' clocks may differ; by more than that a run is dated wrongly. It is less than a night: what comes due is
not newer than the next night's own runs, nor do the runs of this night look old next to it."""
BACK = timedelta(hours=36)
"""So far a series is set back that was judged up to a run dated ahead: tonight's runs are new to it then."""


def latest_due(now: datetime) -> int:
    """Return the latest time, in microseconds, that counts: what is dated later is left out."""
    return micros((now + AHEAD).isoformat())


def set_back(states: Mapping[str, SeriesState], now: datetime | None) -> Mapping[str, SeriesState]:
    """Return the states of series that were judged up to a run dated ahead, set back: tonight's are new to them."""
    return states if now is None else {name: _set_back(state, now) for name, state in states.items()}


def _set_back(state: SeriesState, now: datetime) -> SeriesState:
    edge, tonight = latest_due(now), micros((now - BACK).isoformat())
    if state.judged > edge:
        state = replace(state, judged=tonight)
    if state.said.reported_at > edge:
        state = replace(state, said=replace(state.said, reported_at=tonight))
    if state.history.baseline and micros(state.history.baseline) > edge:
        state = replace(state, history=replace(state.history, baseline=iso(tonight)))
    return state


def learned_by(learned: LearnedNoise | None, now: datetime | None) -> LearnedNoise | None:
    """Return what was learned, on no later night than this one: or it would not be learned again for as long."""
    if learned is None or now is None:
        return learned
    return replace(learned, night=min(learned.night, int(night_of(np.array([micros(now.isoformat())]))[0])))


def dated_ahead(runs: int, first: str | None, newest: int | None, now: datetime) -> tuple[str, ...]:
    """Return a line about runs that are dated later than `latest_due`, `first` one of them.

    Nothing is returned where there are none.
    """
    if newest is None:
        return ()
    which = f"run {first} is" if runs == 1 else f"{runs} runs, {first} the first of them, are"
    return (
        f"{which} dated ahead of this machine's clock, {iso(newest)} where it is {iso(micros(now.isoformat()))}: left "
        "out until then; set the clock that is wrong",
    )


RETIRED = timedelta(days=30)
"""The time without a run after which a scenario, or a series, is retired."""
BUCKET = 250
"""About so many series are judged at once."""
SEED = 1
OnTables = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class SeriesInfo:
    """What a series is: times are microseconds since the epoch, of its newest run and its newest run with a value."""

    series: str
    scenario: str
    experiment: str
    parameters: str
    environment: str
    environment_details: str
    metric: str
    unit: str
    better: str
    runs: int
    newest: int
    newest_value: int | None
    run_id: str
    kafka: str
    verdict: str
    noisy: bool = False
    """Only other work on the machine kept the newest run from a verdict."""
    oldest: int | None = None
    """The time of the first run."""


@dataclass(frozen=True, slots=True)
class Night:
    """A store as it stands after judging: every series, what is said of it, and what could not be read."""

    about: tuple[SeriesInfo, ...]
    states: Mapping[str, SeriesState]
    problems: tuple[str, ...] = ()
    ingested: int = 0
    learned: LearnedNoise | None = field(default=None, repr=False)


Wanted = Callable[[SeriesInfo], bool]
"""Whether a series is judged. A report has to name all of them: a change that is found counts as reported."""


def every_series(_about: SeriesInfo) -> bool:
    """Want each series."""
    return True


def night(
    spark: SparkSession,
    store: Store,
    judge: Judge | None = None,
    *,
    include_noisy: bool = False,
    wait: timedelta = timedelta(),
    now: datetime | None = None,
    begun: datetime | None = None,
    wanted: Wanted = every_series,
) -> Night:
    """Take in what is new, judge every night that was not judged yet, keep what was found; the same again when nothing
    is new. With `include_noisy` runs count that only the machine made inconclusive. Runs that are dated more than 12 h
    after `now` are left out, and named. A night that is known to have `begun` at a time has no run before it. Series
    that are not `wanted` are left to a later judgement.

    Raise StoreError when the store is locked, and still is after `wait`, or cannot be written, or its histories cannot
    be read.
    """
    with locked(store, wait):
        before = state.load(store)
        taken = ingest(spark, store)
        known, problems = values_table.readable(store)
        noise = state.load_noise(store)
        asked = judge or Judge()
        found = judged(
            spark, store, known, before, noise, asked, include_noisy=include_noisy, now=now, begun=begun, wanted=wanted
        )
        relearned = found.learned is not None and found.learned != noise
        if relearned or found.states != before:
            state.save(store, found.states.values(), found.learned)
    all_problems = (*taken.problems, *problems, *found.problems)
    return Night(found.about, found.states, all_problems, taken.runs, found.learned)


def judged(
    spark: SparkSession,
    store: Store,
    known: list[str],
    before: Mapping[str, SeriesState],
    learned: LearnedNoise | None,
    judge: Judge,
    *,
    include_noisy: bool = False,
    now: datetime | None = None,
    begun: datetime | None = None,
    wanted: Wanted = every_series,
) -> Night:
    """Return the judgement alone; nothing is written."""
    if not known:
        return Night((), before)
    before, learned = set_back(before, now), learned_by(learned, now)
    with table(spark, store, known) as every, fast(spark):
        values, ahead = _dated(counted_rows(store, every, include_noisy=include_noisy), now)
        about = catalogue(values)
        if not about:  # every run was set aside, or is dated ahead
            return Night((), before, ahead, learned=learned)
        judged = [each for each in about if each.better != "canary" and each.runs >= FEWEST_RUNS_TO_JUDGE]
        family = family_of(judged, before)
        needed = since(spark, values, about, before)
        lines = {name: each.to_json() for name, each in before.items()}
        taught = [learned] if learned is not None else []
        if judged and _time_to_learn(judged, about, learned):
            chosen = sorted(each.series for each in judged)[:LEARN_FROM]
            teach = _teacher(lines, learned, judge, family)
            sample = needed.join(f.broadcast(_names(spark, chosen)), "series")
            rows = sample.groupBy().applyInArrow(teach, "lesson string").collect()
            taught = [LearnedNoise.from_json(row.lesson) for row in rows]
        buckets = max(spark.sparkContext.defaultParallelism, -(-len(about) // BUCKET))
        chosen = [each.series for each in about if wanted(each)]
        if len(chosen) < len(about):
            needed = needed.join(f.broadcast(_names(spark, chosen)), "series")
        grouped = needed.groupBy(f.expr(f"pmod(xxhash64(place), {buckets})"))
        first = None if begun is None else micros(begun.isoformat())
        rows = grouped.applyInArrow(_judging(lines, taught, judge, family, first), "state string").collect()
    of = {each.series: each for each in about}
    after, newest = dict(before), max(each.newest for each in about)
    for row in rows:
        own = SeriesState.from_json(row.state)
        if own.said.reported is not None and not own.said.reported_at:
            own = replace(own, said=replace(own.said, reported_at=newest))
        after[own.series] = replace(own, experiment=of[own.series].experiment, scenario=of[own.series].scenario)
    return Night(tuple(about), after, ahead, learned=taught[-1] if taught else None)


def family_of(judged: Iterable[SeriesInfo], before: Mapping[str, SeriesState]) -> int:
    """Return how many series the promise of a night is for: all but the ones that cannot report anything any more.

    These have no value for `RETIRED`, and none that is not judged, as of an environment that an update replaced.
    """
    newest = {each.series: each.newest_value or 0 for each in judged}
    begin = max(newest.values(), default=0) - RETIRED // timedelta(microseconds=1)
    return sum(at >= begin or name not in before or at > before[name].judged for name, at in newest.items())


def counted_rows(store: Store, every: DataFrame, *, include_noisy: bool) -> DataFrame:
    """Return the rows as they are judged.

    Runs that were set aside are left out, and runs whose brokers were broken on purpose: they say nothing of Kafka.
    Runs that the machine disturbed have no value, unless these are asked for. Of numbers of experiments without rules
    parts of earlier versions say that lower is better, which was not known.
    """
    hidden = sorted(store.catalogue.index().aside)
    seen = every.where(~f.col("run_id").isin(hidden)) if hidden else every
    summed = (f.col("better") == "lower") & (f.col("unit") == "") & f.col("metric").rlike(SUMMED)
    better = f.when(summed, "unknown").otherwise(f.col("better"))
    values = seen.where(f.col("defects").isNull()).withColumn("better", better)
    if include_noisy:
        return values
    return values.withColumn("value", f.when(f.coalesce("noisy", f.lit(False)), None).otherwise(f.col("value")))


def due_by(values: DataFrame, now: datetime | None) -> DataFrame:
    """Return the rows of runs that are not dated ahead."""
    return values if now is None else values.where(f.col("at") <= _edge(now))


def _edge(now: datetime) -> Column:
    return f.timestamp_micros(f.lit(latest_due(now)))


def _dated(values: DataFrame, now: datetime | None) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the rows of runs that are not dated ahead, and a line about the others."""
    if now is None:
        return values, ()
    newest = f.max(f.unix_micros("at")).alias("newest")
    others = values.where(f.col("at") > _edge(now)).agg(f.count_distinct("run_id"), f.min("run_id"), newest)
    ((runs, first, latest),) = others.collect()
    return due_by(values, now), dated_ahead(runs, first, latest, now)


def catalogue(values: DataFrame) -> list[SeriesInfo]:
    """Return a row a series, ordered by name."""
    first = ("scenario", "experiment", "parameters", "environment", "environment_details", "metric", "unit", "better")
    last = ("run_id", "kafka", "verdict")
    runs = _runs(values)
    rows = (
        values.groupBy("series")
        .agg(
            *(f.first(name).alias(name) for name in first),
            f.max(f.unix_micros("at")).alias("newest"),
            f.min(f.unix_micros("at")).alias("oldest"),
            f.max(f.when(f.col("value").isNotNull(), f.unix_micros("at"))).alias("newest_value"),
            *(f.max_by(name, "at").alias(name) for name in last),
            f.coalesce(f.max_by("noisy", "at"), f.lit(False)).alias("noisy"),
        )
        .collect()
    )
    return sorted(
        (SeriesInfo(**row.asDict(), runs=runs.get(row.series, 0)) for row in rows), key=lambda each: each.series
    )


def _runs(values: DataFrame) -> dict[str, int]:
    """Return how many runs of each series have a value; one that is in two parts is one.

    (Counted apart from all else: a distinct count among the other columns would send these about for each run.)
    """
    measured = values.where(f.col("value").isNotNull()).select("series", "run_id").distinct()
    return {row.series: row.runs for row in measured.groupBy("series").agg(f.count("*").alias("runs")).collect()}


def since(
    spark: SparkSession, values: DataFrame, about: list[SeriesInfo], before: Mapping[str, SeriesState]
) -> DataFrame:
    """Return the runs that judging still needs: of a series that was judged before, its window and newer ones."""
    place = f.concat("scenario", "environment").alias("place")
    rows = values.select("series", place, "metric", "better", "at", "run_id", "value", "failed", "logged", "tested")
    begin = [(each.series, before[each.series].since) for each in about if each.series in before]
    begin = [(series, at) for series, at in begin if at > NEVER]
    if not begin:
        return rows
    if len(begin) == len(about):
        rows = rows.where(f.col("at") >= f.timestamp_micros(f.lit(min(at for _, at in begin))))
    edges = spark.createDataFrame(begin, "series string, since bigint")
    wanted = f.col("since").isNull() | (f.unix_micros("at") >= f.col("since"))
    return rows.join(f.broadcast(edges), "series", "left").where(wanted).drop("since")


def _time_to_learn(judged: list[SeriesInfo], about: list[SeriesInfo], learned: LearnedNoise | None) -> bool:
    lengths = sorted(min(each.runs, MOST_RUNS) for each in judged)
    newest = max(each.newest for each in about)
    return due(learned, int(night_of(np.array([newest]))[0]), float(lengths[len(lengths) // 2]))


def _names(spark: SparkSession, series: list[str]) -> DataFrame:
    return spark.createDataFrame([(name,) for name in series], "series string")


# Spark looks at the annotations of what it is given: so these are functions, with what they need around them.
def _teacher(states: Mapping[str, str], known: LearnedNoise | None, judge: Judge, family: int) -> OnTables:
    def teach(runs: pa.Table) -> pa.Table:
        return pa.table({"lesson": [each.to_json() for each in learn_from(runs, states, known, judge, family, SEED)]})

    return teach


def _judging(
    states: Mapping[str, str], known: list[LearnedNoise], judge: Judge, family: int, begun: int | None
) -> OnTables:
    def judged(runs: pa.Table) -> pa.Table:
        return pa.table({"state": [each.to_json() for each in judge_bucket(runs, states, known, judge, family, begun)]})

    return judged


@contextmanager
def fast(spark: SparkSession) -> Iterator[None]:
    """Apply settings for millions of rows within the block; the session's own are for a few small runs."""
    tasks = str(2 * spark.sparkContext.defaultParallelism)
    wanted = {"spark.sql.codegen.wholeStage": "true", "spark.sql.shuffle.partitions": tasks}
    usual = {name: spark.conf.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, before in usual.items():
            spark.conf.set(name, before or "")
