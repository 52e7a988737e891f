"""Values of scenarios' earlier runs, and the test whether a run of tonight is in doubt against them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from results.contract.aliases import measure_name
from results.contract.store import Store
from results.contract.tables import USE_THREADS
from results.nights import values_table
from results.series.block import MOST_RUNS
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.decision import ChangeRule
from results.series.separation import OUTLIERS

TIMES = 2.0
"""A run that is so many times as far from the middle as the farthest before is in doubt: of calm noise 1 in 200."""
EarlierValues = Mapping[tuple[str, str, str], Sequence[float]]
"""(scenario, environment, metric) → values, oldest first."""


def earlier_values(store: Store, scenarios: Collection[str], before: datetime) -> EarlierValues:
    """Return the newest values of these scenarios' runs that began before a time, of each environment.

    Runs of brokers that were broken on purpose, and runs that were set aside, are in no history.
    """
    return values_table.read_unlocked(store, lambda: _earlier_values(store, scenarios, before))


def _earlier_values(store: Store, scenarios: Collection[str], before: datetime) -> EarlierValues:
    wanted = [("scenario", "in", sorted(scenarios)), ("at", "<", pa.scalar(before, pa.timestamp("us", tz="UTC")))]
    columns = ["scenario", "environment", "metric", "at", "run_id", "value", "noisy", "defects"]
    hidden = store.catalogue.index().aside
    rows: dict[tuple[str, str, str], dict[str, tuple[datetime, float]]] = defaultdict(dict)
    for path in values_table.whole(store) if scenarios else ():
        source = pa.BufferReader(store.files.read(path))
        table = pq.read_table(source, filters=wanted, use_threads=USE_THREADS)
        for row in values_table.of_today(table).select(columns).to_pylist():
            if row["value"] is None or row["noisy"] or row["defects"] is not None or row["run_id"] in hidden:
                continue
            own = rows[row["scenario"], row["environment"], measure_name(row["metric"])]
            own[row["run_id"]] = (row["at"], row["value"])
    return {key: [value for _, value in sorted(runs.values())][-MOST_RUNS:] for key, runs in rows.items()}


def in_doubt(value: float, earlier: Sequence[float]) -> bool:
    """Return whether a value is so far from the earlier ones that more runs must tell whether it is a large change."""
    if len(earlier) < FEWEST_RUNS_TO_JUDGE:
        return False
    values = np.array([*earlier, value], np.float64)
    scaled = np.log(values) if (values > 0).all() else values
    centre = float(np.median(scaled[:-1]))
    spread = np.sort(np.abs(scaled[:-1] - centre))[::-1]
    level = float(np.median(values[:-1]))
    far = abs(value - level) >= ChangeRule().large * abs(level)
    return far and abs(float(scaled[-1]) - centre) > TIMES * float(spread[len(earlier) // OUTLIERS])
