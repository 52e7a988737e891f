"""Notes of the runs that are being written, and the removal of what killed processes have half written.

While a process writes a run or its report, the state folder has a note of it. The note's name is the run and the
process; its content is the location of the store. `collect_half_runs` removes a killed process's incomplete files.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from results.contract import durable
from testbed.errors import TestbedError
from testbed.owner import Owner
from testbed.paths import state_dir


@contextlib.contextmanager
def noted(run_id: str, location: str) -> Iterator[None]:
    """Keep a note within the block: this process writes the run to the store at `location`, or writes its report.

    Raise `OSError` when the state folder cannot be written.
    """
    note = _folder() / f"{run_id},{Owner.this_process()}"
    note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        note.write_text(location, encoding="utf-8")
        yield
    finally:
        note.unlink(missing_ok=True)


def collect_half_runs(reports: Path, *, dry_run: bool) -> list[str]:
    """Remove incomplete runs of dead processes, and their incomplete reports in `reports`; return a line for each.

    A complete run stays, whatever ended its writer. Raise `TestbedError` for a store that cannot be reached. Its note
    stays for the next attempt.
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
    # No note is the rule: `testbed gc` then does without the store's libraries.
    from results.contract.store import Store, StoreError

    try:
        store = Store.open(location)
        half = store.unfinished_files(run_id)
        if half and not dry_run:
            store.discard(run_id)
    except (StoreError, OSError) as error:
        raise TestbedError(f"run {run_id}: what was half written of it is still in {location}: {error}") from error
    return ["a run that is not whole"] if half else []


def _folder() -> Path:
    return state_dir() / "commits"
