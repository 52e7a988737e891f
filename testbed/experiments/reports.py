"""Where runs and their reports lie, and writing a report from what a store holds."""

from pathlib import Path

from results.contract import durable
from results.contract.manifest import Manifest
from results.contract.store import Store
from results.criteria import Judgement, judge
from results.criteria.judgement import changes
from results.report import render
from testbed.experiments.commits import noted
from testbed.paths import data_dir


def default_store() -> str:
    """Where runs go unless `--store` says otherwise."""
    return str(data_dir() / "store")


def reports_dir() -> Path:
    """Where reports are written: always on this machine, also when the store is elsewhere."""
    return data_dir() / "reports"


def write_report(store: Store, run: Manifest, judgement: Judgement | None = None) -> Path:
    """Write a run's report; returns where it is. It tells what was judged otherwise when the run was recorded."""
    samples, events = store.samples(run.run_id), store.events(run.run_id)
    judged = judgement or judge(run, samples, events)
    changed = changes(store.criteria(run.run_id), judged.criteria)
    page = render(run, samples, events, judged.criteria, judged.measures, changed)
    path = reports_dir() / f"{run.run_id}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    with noted(run.run_id, store.location):
        durable.write(path, page)
    return path
