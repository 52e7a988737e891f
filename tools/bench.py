"""Timings of the store and of Spark at several sizes, on generated stores.

./run exec python -m tools.bench [--only samples|history] [--scale 1,3,10] [--rows N] [--series N] [--runs N]
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from results.contract.maintenance import locked
from results.contract.store import Store
from results.nights.ingest import ingest
from results.nights.night import night
from results.nights.state import NOISE
from results.nights.values import READ, summarise
from results.render import table
from results.spark.session import session
from tools import generate
from tools.generate import Spec
from tools.phase_costs import running

SUMMARY = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("mean", "max", "p50", "p99")),
    ]
)
METRICS, SECONDS = 20, 1000
"""Of each generated run: 20 metrics, sampled once a second."""
NEW_RUNS = 10
"""A night's."""
_SPARK_SUMMARY = "run_id string, metric string, `count` bigint, mean double, max double, p50 double, p99 double"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is measured at factor 1; `series` is the same at every factor."""

    rows: int = 1_000_000
    series: int = 1_000
    runs: int = 100


@dataclass(frozen=True, slots=True)
class Timing:
    """`amount` (of `unit`) in `seconds`; `memory` is the most of all processes together, in bytes."""

    what: str
    scale: float
    amount: int
    unit: str
    seconds: float
    memory: int


def bench(
    spark: SparkSession,
    scales: list[float],
    sizes: Sizes,
    folder: Path | None = None,
    only: Literal["samples", "history"] | None = None,
) -> Iterator[Timing]:
    """Yield all timings of a scale, or `only` some, then those of the next.

    Stores are made below `folder` (default: where temporary files go) and removed again.
    """
    for scale in scales:
        if only in (None, "samples"):
            with TemporaryDirectory(prefix="testbed-bench-", dir=folder) as made:
                yield from _samples(spark, scale, sizes, Store.open(Path(made) / "samples"))
        if only in (None, "history"):
            with TemporaryDirectory(prefix="testbed-bench-", dir=folder) as made:
                yield from _history(spark, scale, sizes, Store.open(Path(made) / "history"))


def _samples(spark: SparkSession, scale: float, sizes: Sizes, store: Store) -> Iterator[Timing]:
    count = max(1, round(scale * sizes.rows / (METRICS * SECONDS)))
    _fill(spark, store, range(count))

    def scan() -> None:
        summaries(spark, store).write.format("noop").mode("overwrite").save()

    yield _timed("sample rows summarised", scale, count * METRICS * SECONDS, "rows", scan)
    with locked(store):
        ingest(spark, store)
    _fill(spark, store, range(count, count + NEW_RUNS))

    def take_in() -> None:
        with locked(store):
            taken = ingest(spark, store)
        if taken.runs != NEW_RUNS or taken.problems:
            raise RuntimeError(f"{taken.runs} runs taken in, {NEW_RUNS} were new: {taken.problems}")

    yield _timed(f"a night's runs ingested beside {count} old ones", scale, NEW_RUNS, "runs", take_in)


def _fill(spark: SparkSession, store: Store, runs: range) -> None:
    """Commit generated runs, on all cores."""
    location, spec = store.location, Spec(1, runs.stop)

    def commit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done = list(generate.samples(Store.open(location), batch.column("run").to_pylist(), METRICS, SECONDS, spec))
            yield pa.RecordBatch.from_arrays([pa.array(done, pa.string())], ["run_id"])

    numbers = spark.createDataFrame([(run,) for run in runs], "run int")
    tasks = min(len(runs), 4 * spark.sparkContext.defaultParallelism)
    numbers.repartition(tasks).mapInArrow(commit, "run_id string").write.format("noop").mode("overwrite").save()


def _summary(run_id: str, samples: pa.Table) -> pa.Table:
    """Return the four numbers of each metric of a run's samples."""
    names, counts, numbers = summarise(samples)
    columns = [[run_id] * len(names), names, counts, *numbers.T]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SUMMARY, strict=True)], schema=SUMMARY)


def summaries(spark: SparkSession, store: Store) -> DataFrame:
    """Return every run's metrics in four numbers each: each run is read once, checked against its digest, on some
    worker."""
    location = store.location

    def summarised(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own = Store.open(location)
        for batch in batches:
            for run_id in batch.column("run_id").to_pylist():
                yield from _summary(run_id, own.table(run_id, "samples", READ)).to_batches()

    ids = store.runs()
    frame = spark.createDataFrame([(run_id,) for run_id in ids], "run_id string")
    tasks = min(len(ids), 4 * spark.sparkContext.defaultParallelism)
    return frame.repartitionByRange(tasks, "run_id").mapInArrow(summarised, _SPARK_SUMMARY)


def _history(spark: SparkSession, scale: float, sizes: Sizes, store: Store) -> Iterator[Timing]:
    runs = max(12, round(scale * sizes.runs))
    changes = generate.steps(max(1, sizes.series // 100), sizes.series, runs // 2, 0.15)
    spec = Spec(sizes.series, runs + 1, changes, end=runs)
    generate.history(store, spec)

    def whole() -> None:
        done = night(spark, store)
        found = sum(len(each.history.reported) for each in done.states.values())
        if found < len(changes):
            raise RuntimeError(f"{found} changes found, {len(changes)} steps of 15 % were put in")

    yield _timed("full history judged", scale, sizes.series * runs, "values", whole)
    generate.history(store, replace(spec, begin=runs, end=runs + 1))
    store.files.discard(NOISE)  # so that a night is measured on which the noise is learned again
    yield _timed("newest 60 runs judged", scale, sizes.series, "series", lambda: night(spark, store))


def _timed(what: str, scale: float, amount: int, unit: str, work: Callable[[], object]) -> Timing:
    with memory_read() as memory:
        begun = time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
    return Timing(what, scale, amount, unit, seconds, max(memory))


EVERY_S = 0.5


@contextmanager
def memory_read() -> Iterator[list[int]]:
    """Read the memory of this process and its descendants every half second over the block, and at its ends.

    Yield the list of readings, in bytes: proportional set sizes, from /proc.
    """
    found: list[int] = []
    done = threading.Event()

    def read() -> None:
        found.append(sum(_held(pid) for pid in family(os.getpid())))

    def watch() -> None:
        while not done.wait(EVERY_S):
            read()

    watcher = threading.Thread(target=watch, daemon=True)
    read()
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()
        read()


def family(root: int) -> list[int]:
    """Return the process and all its descendants."""
    children: dict[int, list[int]] = {}
    for each in running():
        children.setdefault(each.parent, []).append(each.pid)
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _held(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended meanwhile, or is another user's
        return 0
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Run the measurements and print a table; return 0 when every step did what it should."""
    parser = argparse.ArgumentParser(prog="tools.bench", description="timings of the store and of Spark")
    parser.add_argument("--scale", default="1,3,10", metavar="N,…", help="factors of the sizes (1,3,10)")
    parser.add_argument("--only", choices=("samples", "history"), help="measure only the samples, or only the history")
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N", help="sample rows at factor 1 (1000000)")
    parser.add_argument("--series", type=int, default=1_000, metavar="N", help="series, at every factor (1000)")
    parser.add_argument("--runs", type=int, default=100, metavar="N", help="runs of each series at factor 1 (100)")
    parser.add_argument("--master", default="local[*]", metavar="URL", help="Spark's master (local[*])")
    parser.add_argument("--memory", default="2g", metavar="SIZE", help="the JVM's heap, as Spark writes it (2g)")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    args = parser.parse_args(words)
    try:
        scales = [float(word) for word in args.scale.split(",")]
    except ValueError as error:
        parser.error(f"--scale {args.scale}: expected factors, as 1,3,10: {error}")
    if min(scales) <= 0 or min(args.rows, args.series, args.runs) < 1:
        parser.error("--scale, --rows, --series and --runs are above 0")
    found = []
    with session(args.master, args.memory) as spark:
        for timing in bench(spark, scales, Sizes(args.rows, args.series, args.runs), only=args.only):
            found.append(timing)
            print(f"{timing.what}: {timing.seconds:.1f} s", file=sys.stderr, flush=True)
    if args.json:
        print(json.dumps({"master": args.master, "timings": [asdict(timing) for timing in found]}, indent=2))
        return 0
    rows = [
        (t.what, f"{t.scale:g}", f"{t.amount:,} {t.unit}", f"{t.seconds:.1f}", f"{t.memory / 2**30:.2f}") for t in found
    ]
    print(table(("WHAT", "SCALE", "AMOUNT", "SECONDS", "GiB AT MOST"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
