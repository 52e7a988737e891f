"""Small stores of many runs, for the tests of what becomes of a store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from results.contract.files import Files
from results.contract.manifest import new_run_id
from results.contract.store import RunData, Store

START = datetime(2026, 9, 1, 3, tzinfo=UTC)


def local(path):
    return Store.open(path)


def objects(path):
    """A store among objects, which are files here."""
    path.mkdir()
    return Store(Files(fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()), PurePosixPath("bucket/prefix")), "mem://")


def some_runs(data: RunData, count: int, experiment: str = "kip73-two-node", every: timedelta = timedelta(days=4)):
    """Runs that differ in their samples: one each four days, so that they lie in several months."""
    for i in range(count):
        moment = START + i * every
        run_id = new_run_id(experiment, moment, f"run{i:03d}")
        samples = data.samples.slice(0, 40 + i)
        value = pc.add(samples["value"], float(i))
        samples = samples.set_column(samples.column_names.index("value"), samples.schema.field("value"), value)
        manifest = replace(data.manifest, run_id=run_id, experiment=experiment)
        html = f"<!doctype html>{run_id}" if i % 2 else None
        yield replace(data, manifest=manifest, samples=samples, report_html=html)


def filled(store: Store, runs) -> Store:
    for run in runs:
        store.commit(run)
    return store


def contents(store: Store):
    """Everything that readers can see of a store."""
    return {
        run_id: (
            replace(store.manifest(run_id), files=(), report=None),
            store.samples(run_id).to_pydict(),
            store.events(run_id).to_pydict(),
            store.criteria(run_id),
            store.report(run_id),
        )
        for run_id in store.runs()
    }


def damage(store: Store, run_id: str):
    """Overwrite a run's samples, also in a pack; returns the path of their file."""
    path = store.files.root / store.manifest(run_id).files[0].path
    footer = pq.read_metadata(path)
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    column = next(group for group in groups if group.column(0).statistics.min == run_id).column(7)
    intact, at = path.read_bytes(), column.data_page_offset
    path.write_bytes(intact[:at] + bytes(20) + intact[at + 20 :])
    return path
