"""Nights drawn from the shipped history's runs, judged in this process as Spark's workers judge them.

`python tests/nights/replayed.py` reads `results/example` and writes the values of its runs, which the tests draw from.
"""

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import results
from results.contract.archive import import_runs
from results.contract.canaries import canaries
from results.contract.store import Store
from results.nights.bucket import judge_bucket, learn_from, micros
from results.nights.ingest import rows_of
from results.nights.judged_runs import night_of
from results.nights.night import Night, SeriesInfo
from results.nights.scenarios import scenarios
from results.nights.values import FAILED, VALUES
from results.series.block import MOST_RUNS
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.judge import Judge
from results.series.noise_estimation import due

EXAMPLE = Path(results.__file__).parent / "example"
RECORDED = Path(__file__).parent / "example.parquet"
RELEASES = ("3.9.2", "4.2.1", "4.3.1")
BEGIN = datetime(2027, 1, 1, 2, tzinfo=UTC)
COLUMNS = ("series", "metric", "better", "at", "run_id", "value", "failed", "logged", "tested")


def recorded(store, run_ids):
    """The rows of some runs, in order."""
    return [row for run_id in run_ids for row in rows_of(store, run_id, canaries(store, run_id))]


@cache
def drawn_from(release):
    """Scenario → the rows of each of its runs of that release that were measured."""
    found = defaultdict(lambda: defaultdict(list))
    for row in pq.read_table(RECORDED).to_pylist():
        if row["kafka"] == release:
            found[row["scenario"]][row["run_id"]].append(row)
    # Of 3.9.2 three runs of `bootstrap` were inconclusive by a fault of the measurement that was mended then.
    measured = {s: [r for r in runs.values() if _failed(r) is not None] for s, runs in found.items()}
    return {scenario: runs for scenario, runs in sorted(measured.items()) if runs}


def _failed(rows):
    return next(row["value"] for row in rows if row["metric"] == FAILED)


class History:
    """Nights of runs, each given as its rows: dated one day after the other, and judged as they come."""

    def __init__(self):
        self.parts, self.series, self.states, self.lessons, self.nights = [], defaultdict(list), {}, [], 0

    def begin(self):
        """When the next night begins."""
        at = BEGIN + timedelta(days=self.nights)
        self.nights += 1
        return at

    def add(self, rows):
        """The scenarios of one more night of these rows."""
        self.parts.append(_table(rows))
        for row in rows:
            self.series[row["series"]].append(row)
        return scenarios(self._judged())

    def played(self, store, run_ids):
        """The scenarios of one more night of these runs of a store; a run that is noisy has no value."""
        at, rows = self.begin(), []
        for number, run_id in enumerate(run_ids):
            own = {"at": at + timedelta(minutes=7 * number)}
            rows += [{**row, **own} for row in rows_of(store, run_id, canaries(store, run_id))]
        return self.add([{**row, "value": None if row["noisy"] else row["value"]} for row in rows])

    def _judged(self):
        about = _about(self.series)
        table = pa.concat_tables(self.parts)
        lines = {name: state.to_json() for name, state in self.states.items()}
        long = [each for each in about if each.better != "canary" and each.runs >= FEWEST_RUNS_TO_JUDGE]
        if not long:
            return Night(about, {})
        known = self.lessons[-1] if self.lessons else None
        typical = sorted(min(each.runs, MOST_RUNS) for each in long)[len(long) // 2]
        newest = max(each.newest for each in about)
        if due(known, int(night_of(np.array([newest]))[0]), typical):
            self.lessons = learn_from(table, lines, known, Judge(), len(long), 1)
        of = {each.series: each for each in about}
        for state in judge_bucket(table, lines, self.lessons, Judge(), len(long)):
            said = state.said
            if said.reported is not None and not said.reported_at:
                said = replace(said, reported_at=newest)
            self.states[state.series] = replace(state, said=said, scenario=of[state.series].scenario)
        return Night(about, dict(self.states))


class Nights(History):
    """A history that grows by runs drawn from a pool: each run whole, with what canaries read beside it."""

    def __init__(self, release, seed, begin=12):
        super().__init__()
        self.pool, self.rng = drawn_from(release), np.random.default_rng(seed)
        self.night(begin)

    def night(self, each=1, change=None):
        """The scenarios of one more night of so many runs of each; `change` is applied to every row."""
        at, rows = self.begin(), []
        for scenario, runs in self.pool.items():
            for number in range(each):
                when = at + timedelta(minutes=7 * number)
                own = {"at": when, "run_id": f"{when:%Y%m%dT%H%M%SZ}-{scenario}"}
                drawn = [{**row, **own} for row in runs[self.rng.integers(len(runs))]]
                rows += [change(row, number) for row in drawn] if change else drawn
        return self.add(rows)


def _table(rows):
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    columns["place"] = [row["scenario"] + row["environment"] for row in rows]
    return pa.table(columns).cast(pa.schema([_field(name) for name in (*COLUMNS, "place")]))


def _field(name):
    return pa.field("place", pa.string()) if name == "place" else VALUES.field(name)


def _about(series):
    """What `results.nights.night.catalogue` asks Spark for, of the rows of each series, oldest first."""
    return tuple(_info(each) for _, each in sorted(series.items()))


def _info(rows):
    last, valued = rows[-1], [row for row in rows if row["value"] is not None]
    same = (
        "series",
        "scenario",
        "experiment",
        "parameters",
        "environment",
        "environment_details",
        "metric",
        "unit",
        "better",
    )
    return SeriesInfo(
        **{name: last[name] for name in (*same, "run_id", "kafka", "verdict")},
        noisy=bool(last["noisy"]),
        runs=len(valued),
        newest=micros(last["at"].isoformat()),
        newest_value=micros(valued[-1]["at"].isoformat()) if valued else None,
        oldest=micros(rows[0]["at"].isoformat()),
    )


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        store = Store.open(folder)
        for archive in sorted(EXAMPLE.glob("*.tar")):
            import_runs(store, archive)
        found = recorded(store, store.runs())
    pq.write_table(pa.Table.from_pylist(found, schema=VALUES), RECORDED, compression="zstd")
