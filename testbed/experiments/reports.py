"""Reports of runs: their figures, their folder, and the page of a stored run."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from results.contract import durable
from results.contract.files import LocalFiles
from results.contract.manifest import Manifest
from results.contract.packs import INDEX
from results.contract.store import Store, StoreError
from results.criteria import Judgement, MoveMeasures
from results.criteria.judgement import changes
from results.criteria.model import estimate
from results.report import render
from testbed.errors import UsageError
from testbed.experiments.half_runs import noted
from testbed.paths import data_dir, reports_dir


@dataclass(frozen=True, slots=True)
class RunFigure:
    """One number; `host` and `direction` are empty for the move as a whole."""

    name: str
    host: str
    direction: str
    value: float
    unit: str


def figures(run: Manifest, measures: MoveMeasures) -> tuple[RunFigure, ...]:
    """Return the figures of a move, as shares of each of its quotas and of its estimated times."""
    if run.move is None:
        return ()
    found: list[RunFigure] = []

    def add(name: str, value: float | None, unit: str, host: str = "", direction: str = "") -> None:
        if value is not None:
            found.append(RunFigure(name, host, direction, value, unit))

    phases = [(phase.quota_bytes_per_s, phase.rates) for phase in measures.phases]
    for number, (quota, ends) in enumerate(phases or [(run.move.quota_bytes_per_s, measures.rates)], 1):
        which = f", phase {number}" if len(phases) > 1 else ""
        for rates in ends:
            lowest = rates.steady.lowest_window_bytes_per_s if rates.steady else None
            # A value above 1 exceeds the strict reading of the quota, quota × 11 s in any 11 s, by the difference.
            for name, rate in (
                (f"highest {run.move.window_s:g} s", rates.highest_window_bytes_per_s),
                (f"lowest {run.move.window_s:g} s", lowest),
                ("highest 1 s", rates.highest_second_bytes_per_s),
                ("steady", rates.steady_bytes_per_s),
            ):
                share = None if rate is None else rate / quota
                add(f"{name}{which}", share, "of the quota", rates.host, rates.direction)
    estimated = estimate(run.run_id, run.move, measures)
    add("throttled part", measures.throttled_s, "s")
    add("the model's estimate", estimated.predicted_s, "s")
    add("its error", None if estimated.error is None else estimated.error * 100, "%")
    add("KIP-73's estimate", measures.kip73_s if measures.kip73_s > 0 else None, "s")
    add("observed ÷ estimate", measures.kip73_ratio, "")
    return tuple(found)


def default_store() -> str:
    """Return the location of runs without `--store`."""
    return str(data_dir() / "store")


def open_store(location: str | None) -> Store:
    """Return the store at a location, or the default one. Raise `UsageError` when it cannot be opened."""
    try:
        return Store.open(location or default_store())
    except StoreError as error:
        raise UsageError(str(error)) from error


def open_store_for_runs(location: str | None) -> Store:
    """Return the store as `open_store` does. Raise `UsageError` when new runs cannot be written there."""
    store = open_store(location)
    if isinstance(store.files, LocalFiles):
        root = store.files.root
        there = next(folder for folder in (root, *root.parents) if folder.exists())
        if not os.access(there, os.W_OK):
            raise UsageError(
                f"{store.location} cannot be written: {there} is on a read-only file system, or is another user's; "
                "give another store with --store"
            )
    else:
        _require_bucket(store)
    return store


def _require_bucket(store: Store) -> None:
    """Raise `UsageError` when the object store does not answer, or does not have the bucket."""
    bucket, missing = str(store.files.root).partition("/")[0], False
    try:
        store.files.exists(INDEX)
        with suppress(OSError):  # who may use objects with a prefix need not be allowed to ask for the bucket
            missing = store.files.filesystem.get_file_info(bucket).type == fs.FileType.NotFound
    except OSError as error:
        raise UsageError(f"{store.location} cannot be reached: {error}; give another store with --store") from error
    if missing:
        raise UsageError(f"{store.location}: there is no bucket {bucket}; make it, or give another store with --store")


def write_report(store: Store, run: Manifest, judgement: Judgement) -> Path:
    """Write a run's report and return its path. The report shows differences from the recorded judgement."""
    samples, events = store.samples(run.run_id), store.events(run.run_id)
    changed = changes(store.criteria(run.run_id), judgement.criteria)
    page = render(run, samples, events, judgement.criteria, judgement.measures, changed)
    path = reports_dir() / f"{run.run_id}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    with noted(run.run_id, store.location):
        durable.write(path, page)
    return path
