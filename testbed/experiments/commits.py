"""Committing runs so that what a killed command left half written is found, and removed.

While a run (or its report) is being written there is a note of it in the state folder. Its name is the run and the
process that writes, so that it tells as soon as it exists; it holds where the store is.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from results.contract import durable
from results.contract.store import RunData, Store, StoreError
from testbed.errors import TestbedError
from testbed.owner import Owner
from testbed.paths import state_dir


def commit(store: Store, run: RunData) -> None:
    """Write a run to its store. Raises `TestbedError`; then, and after a kill and `gc`, nothing of it is there."""
    with noted(run.manifest.run_id, store.location):
        try:
            store.commit(run)
        except StoreError as error:
            raise TestbedError(str(error)) from error


@contextlib.contextmanager
def noted(run_id: str, location: str) -> Iterator[None]:
    """Within the block something of this run is being written to the store at `location`, or is its report.

    Raises `OSError` when the state folder cannot be written.
    """
    note = _folder() / f"{run_id},{Owner.this_process()}"
    note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        note.write_text(location, encoding="utf-8")
        yield
    finally:
        note.unlink(missing_ok=True)


def collect_half_runs(reports: Path, *, dry_run: bool) -> list[str]:
    """Remove what dead processes left half written of runs, and of their reports in `reports`; a line for each.

    A run that is whole stays, whatever its writer died of. Raises `TestbedError` for a store that cannot be reached;
    its note stays, for the next try.
    """
    said = []
    for note in sorted(_folder().glob("*,*")):
        run_id, _, whose = note.name.partition(",")
        owner = Owner.parse(whose)
        if owner is None or owner.alive():
            continue
        what = _half_run(run_id, note.read_text(encoding="utf-8"), dry_run)
        partial = durable.temporaries(reports / f"{run_id}.html")
        what += ["half a report"] * bool(partial)
        if what:
            said.append(f"{run_id}: {'would be ' if dry_run else ''}removed: {' and '.join(what)}")
        if not dry_run:
            for path in partial:
                path.unlink(missing_ok=True)
            note.unlink()
    return said


def _half_run(run_id: str, location: str, dry_run: bool) -> list[str]:
    if not location:
        return []  # killed before anything was written
    try:
        store = Store.open(location)
        half = store.half(run_id)
        if half and not dry_run:
            store.discard(run_id)
    except (StoreError, OSError) as error:
        raise TestbedError(f"run {run_id}: what was half written of it is still in {location}: {error}") from error
    return ["a run that is not whole"] if half else []


def _folder() -> Path:
    return state_dir() / "commits"
