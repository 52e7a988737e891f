"""Where runs and their reports lie, and writing a report from what a store holds."""

from pathlib import Path

from results.criteria import Judgement, judge
from results.manifest import Manifest
from results.report import render
from results.store import Store
from testbed.paths import data_dir


def default_store() -> str:
    """Where runs go unless `--store` says otherwise."""
    return str(data_dir() / "store")


def write_report(store: Store, run: Manifest, judgement: Judgement | None = None) -> Path:
    """Write a run's report; always on this machine, also when the store is elsewhere."""
    samples, events = store.samples(run.run_id), store.events(run.run_id)
    judged = judgement or judge(run, samples, events)
    page = render(run, samples, events, judged.criteria, judged.measures)
    path = data_dir() / "reports" / f"{run.run_id}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".partial")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(path)
    return path
