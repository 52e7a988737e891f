"""Stores whose truth is known: histories of values with changes put in, and runs with samples. Seeded.

A generated history is the values table alone, as ingesting so many runs would have left it; generated runs have
manifests and samples, and go through everything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from results.contract.manifest import Facts, Load, Machine, Manifest, NicMeasurement, TopologyRecord, Versions
from results.contract.schema import SAMPLES, events_table
from results.contract.store import RunData, Store
from results.contract.verdict import Finding
from results.nights import values_table
from results.nights.values import VALUES, Value, rows
from results.series.block import Floats
from tools.simulation import FAMILIES

EXPERIMENT = "generated"
START = datetime(2024, 1, 1, 2, tzinfo=UTC)
NIGHT = timedelta(days=1)
METRICS = ("latency", "seconds", "rate", "cpu", "memory")
ROWS_A_PART = 250_000
Kind = Literal["step", "drift", "spike"]


@dataclass(frozen=True, slots=True)
class Change:
    """From run `at` of a series on, its level is `size` (a fraction) higher: at once, over 20 runs (drift), or in that
    run alone (spike). `series` counts all metrics of all scenarios. With `machine` the scenario's canary shows it.
    """

    series: int
    at: int
    size: float
    kind: Kind = "step"
    machine: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """`series` × `runs` with noise of that family around levels of their own; `sigma` is a fraction of the level."""

    series: int
    runs: int
    changes: tuple[Change, ...] = ()
    family: str = "gaussian"
    sigma: float = 0.03
    seed: int = 1
    begin: int = 0
    end: int | None = None
    """The runs that are written, all unless said: a store grows when the same is written with later ones."""

    @property
    def scenarios(self) -> int:
        """Five metrics each."""
        return -(-self.series // len(METRICS))


def steps(count: int, series: int, at: int, size: float) -> tuple[Change, ...]:
    """So many steps, spread over the series."""
    return tuple(Change(int(each), at, size) for each in np.linspace(0, series - 1, count).round())


def matrix(spec: Spec) -> Floats:
    """`values[run, series]`, changes put in."""
    rng = np.random.default_rng(spec.seed)
    noise = FAMILIES[spec.family](rng, spec.runs, spec.series)
    level = np.exp(rng.uniform(0, 10, spec.series))
    shift = np.zeros((spec.runs, spec.series))
    for change in spec.changes:
        after = np.arange(spec.runs) - change.at
        shape = {
            "step": (after >= 0).astype(float),
            "drift": np.clip((after + 1) / 20, 0, 1),
            "spike": (after == 0).astype(float),
        }[change.kind]
        shift[:, change.series] += change.size * shape
    return np.asarray(level * (1 + spec.sigma * noise + shift))


def manifest(run_id: str, at: datetime, parameters: dict[str, Any], kafka: str) -> Manifest:
    """Return a run of no cluster: it passed, on a machine that does not exist."""
    when = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Manifest(
        run_id=run_id,
        experiment=EXPERIMENT,
        profile="ci",
        started=when,
        ended=when,
        verdict="pass",
        parameters=parameters,
        topology=TopologyRecord("none", "0" * 64, {}),
        versions=Versions("0", None, {"b1": kafka}, None, None, "3", "none", "6"),
        machine=Machine("generated", 2, 1 << 34, "6", "none", "none"),
        nics=(NicMeasurement("b1", "eth1", "transmit", 400_000_000, 47_000_000.0, 0.998, 1.0),),
        load=Load(0.4, 0.6, 0.0),
        move=None,
        facts=Facts(),
    )


def when(scenario: int, run: int) -> datetime:
    """Return the time of a scenario's run in that night."""
    return START + run * NIGHT + scenario * timedelta(seconds=3)


def kafka_of(run: int) -> str:
    """Return the Kafka of a night: each lasts for 40 nights."""
    return f"4.{run // 200}.{run // 40 % 5}"


def id_of(scenario: int, run: int) -> str:
    """Return a run id, as `new_run_id` makes them, many times as fast."""
    return f"{when(scenario, run):%Y%m%dT%H%M%SZ}-{EXPERIMENT}-{scenario:06d}"


def run_of(scenario: int, run: int) -> Manifest:
    """Return the run of a scenario in that night."""
    return manifest(id_of(scenario, run), when(scenario, run), {"case": scenario}, kafka_of(run))


def history(store: Store, spec: Spec) -> int:
    """Write the values of a history; returns how many rows there are. Run after run, as a store grows."""
    values = matrix(spec)
    scenarios = range(spec.scenarios)
    heads = [rows(run_of(s, 0), (), [Value(m, "units", "lower", 1.0) for m in METRICS])[1:] for s in scenarios]
    words = {name: [head[name] for each in heads for head in each][: spec.series] for name in _FIXED}
    canary = [rows(run_of(s, 0), (), [Value("canary.cpu", "s", "canary", 1.0)])[1] for s in scenarios]
    readings = _readings(spec)
    at_once = max(1, ROWS_A_PART // (spec.series + spec.scenarios))
    total = 0
    own = {name: [head[name] for head in canary] for name in _FIXED}
    end = spec.runs if spec.end is None else spec.end
    for begin in range(spec.begin, end, at_once):
        tables = []
        for run in range(begin, min(begin + at_once, end)):
            tables.append(_table(spec, run, words, values[run], len(METRICS)))
            tables.append(_table(spec, run, own, readings[run], 1))
        part = pa.concat_tables(tables)
        total += part.num_rows
        values_table.write(store, part)
    return total


_FIXED = (
    "scenario",
    "series",
    "experiment",
    "parameters",
    "environment",
    "environment_details",
    "metric",
    "unit",
    "better",
)


def _readings(spec: Spec) -> Floats:
    """Return the canary of each scenario: it moves with the changes that are the machine's."""
    rng = np.random.default_rng([spec.seed, 1])
    readings = 1 + 0.01 * rng.standard_normal((spec.runs, spec.scenarios))
    for change in spec.changes:
        if change.machine:
            readings[change.at :, change.series // len(METRICS)] *= 1.3
    return readings


def _table(spec: Spec, run: int, words: dict[str, list[str]], values: Floats, each: int) -> pa.Table:
    """Return the rows of one night; `each` rows a scenario."""
    own = np.repeat(np.arange(spec.scenarios), each)[: len(values)]
    scenarios = range(spec.scenarios)
    ids, at = [id_of(s, run) for s in scenarios], [when(s, run) for s in scenarios]
    known: dict[str, Any] = {
        **words,
        "run_id": [ids[i] for i in own],
        "at": [at[i] for i in own],
        "kafka": [kafka_of(run)] * len(own),
        "verdict": ["pass"] * len(own),
        "value": values,
        "noisy": [False] * len(own),
    }
    nothing = [None] * len(own)
    return pa.table([pa.array(known.get(field.name, nothing), field.type) for field in VALUES], schema=VALUES)


def sampled(run: Manifest, metrics: int, seconds: int, seed: int, level: float = 1.0) -> RunData:
    """Return a run with `metrics` × `seconds` samples around `level`, ± 3 %."""
    rng = np.random.default_rng([seed, int.from_bytes(run.run_id.encode()[-6:])])
    start = int(datetime.fromisoformat(run.started).timestamp() * 1e6)
    at = np.repeat(start + np.arange(seconds) * 1_000_000, metrics)
    names = pa.DictionaryArray.from_arrays(
        pa.array(np.tile(np.arange(metrics), seconds), pa.int32()), [f"generated.m{i:02d}" for i in range(metrics)]
    )
    count = metrics * seconds
    columns = {
        "ts": pa.array(at, SAMPLES.field("ts").type),
        "host": pa.array(["b1"] * count),
        "metric": names.cast(pa.string()),
        "topic": pa.nulls(count, pa.string()),
        "partition": pa.nulls(count, pa.int32()),
        "label": pa.nulls(count, pa.string()),
        "value": level * (1 + 0.03 * rng.standard_normal(count)),
    }
    held = Finding("generated", None, None, "a value", 1.0, "", "none", "pass", "", ("generated",))
    return RunData(run, pa.table(columns, schema=SAMPLES), events_table([]), [held])


def samples(store: Store, runs: Sequence[int], metrics: int, seconds: int, spec: Spec) -> Iterator[str]:
    """Commit those runs (of scenario 0 of `spec`), with samples; the first metric's level has the spec's changes."""
    levels = matrix(spec)[:, 0] / matrix(replace(spec, changes=()))[:, 0]
    for run in runs:
        yield store.commit(sampled(run_of(0, run), metrics, seconds, spec.seed, float(levels[run])))
