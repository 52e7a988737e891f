"""Real runs as nights: dated one day after the other and judged as `testbed nightly` judges a store.

A self-test makes its runs in a few hours; a history needs days. Only the dates are replaced, in a store of its own.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from results.compare.log_lines import LOG_LINES, Kinds, new_lines
from results.contract.canaries import canaries
from results.contract.store import Store
from results.nights import values_table
from results.nights.ingest import rows_of
from results.nights.night import judged
from results.nights.values import VALUES
from results.series.block import MOST_RUNS
from results.series.judge import Judge

FIRST_NIGHT = datetime(2026, 1, 1, 20, tzinfo=UTC)
"""Any evening: nights change at noon."""


@dataclass(frozen=True, slots=True)
class NightChange:
    """A change reported in a night, from 1. `effect` is a fraction of the level before; new log lines have none."""

    night: int
    scenario: str
    metric: str
    effect: float | None

    def __str__(self) -> str:
        changed = "" if self.effect is None else f" {self.effect:+.1%}"
        return f"night {self.night}: {self.metric}{changed} in {self.scenario}"


def night_changes(spark: SparkSession, store: Store, nights: Sequence[Sequence[str]]) -> list[NightChange]:
    """Return all that is reported when these runs are judged night by night; one night for each element.

    A change for which a canary of the machine answers is left out, as it is not reported as Kafka's. Broken brokers
    count here, and only here.
    """
    number = {run_id: night for night, runs in enumerate(nights, 1) for run_id in runs}
    rows = [
        row
        for night, runs in enumerate(nights)
        for minutes, run_id in enumerate(runs)
        for row in _dated(store, run_id, FIRST_NIGHT + timedelta(days=night, minutes=minutes))
    ]
    if not rows:
        return []
    with tempfile.TemporaryDirectory(prefix="testbed-nights-") as folder:
        replayed = Store.open(folder)
        values_table.write(replayed, pa.Table.from_pylist(rows, schema=VALUES))
        found = judged(spark, replayed, values_table.paths(replayed), {}, None, Judge())
    about = {each.series: each for each in found.about}
    changes = [
        NightChange(number[one.found], about[name].experiment, about[name].metric, one.change.effect)
        for name, state in found.states.items()
        for one in state.history.reported
        if one.first_bad not in state.causes
    ]
    changes += line_changes(rows, number)
    return sorted(changes, key=lambda each: (each.night, each.scenario, each.metric))


def line_changes(rows: Sequence[Mapping[str, Any]], night_of_run: Mapping[str, int]) -> Iterator[NightChange]:
    """Yield the nights on which log lines are found to be new, from the rows of all nights in order. Pure."""
    by_series: dict[tuple[str, str], dict[int, list[Kinds]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["logged"] is not None and row["value"] is not None:
            own = by_series[row["experiment"], row["series"]]
            own[night_of_run[row["run_id"]]].append(frozenset(json.loads(row["logged"])))
    for (experiment, _series), nights in by_series.items():
        earlier: list[Kinds] = []
        for night, tonight in nights.items():
            if any(each.found for each in new_lines(earlier[-MOST_RUNS:], tonight)):
                yield NightChange(night, experiment, LOG_LINES, None)
            earlier += tonight


def _dated(store: Store, run_id: str, at: datetime) -> list[dict[str, Any]]:
    """Return the rows of a run as though it had been made at another time, by healthy brokers."""
    read: Mapping[str, float] = canaries(store, run_id)
    return [{**row, "at": at, "defects": None} for row in rows_of(store, run_id, read)]
