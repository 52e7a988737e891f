"""`testbed results …`: what is in a store."""

from results.manifest import Manifest
from results.store import Store, StoreError
from testbed.cli.show import table
from testbed.cli.verdicts import criterion_lines
from testbed.errors import TestbedError, UsageError
from testbed.experiments.reports import default_store, write_report


def open_store(uri: str | None) -> Store:
    """The store at `uri`, or the default one."""
    try:
        return Store.open(uri or default_store())
    except StoreError as error:
        raise UsageError(str(error)) from error


def pick(store: Store, run_id: str | None) -> str:
    """The run meant: the newest one unless named. Raises `UsageError` when it is not there."""
    runs = store.runs()
    if run_id is None:
        if not runs:
            raise UsageError(f"{store.location} has no runs yet; `testbed run kip73-two-node` makes one")
        return runs[-1]
    if run_id not in runs:
        raise UsageError(f"{store.location} has no run {run_id}; `testbed results list` lists them")
    return run_id


def list_runs(store: Store) -> int:
    """One line for each run, oldest first."""
    scan = store.scan()
    rows = [
        (m.run_id, m.experiment, m.verdict, ", ".join(sorted(set(m.versions.kafka.values())))) for m in scan.manifests
    ]
    if rows:
        print(table(("RUN", "EXPERIMENT", "VERDICT", "KAFKA"), rows))
    else:
        print(f"no runs in {store.location}")
    for problem in scan.problems:
        print(f"unreadable: {problem}")
    return 1 if scan.problems else 0


def _manifest(store: Store, run_id: str) -> Manifest:
    try:
        return store.manifest(run_id)
    except StoreError as error:
        raise TestbedError(str(error)) from error


def show(store: Store, run_id: str) -> int:
    """A run's criteria."""
    run = _manifest(store, run_id)
    print("\n".join(criterion_lines(store.criteria(run_id))))
    print(f"\n{run.verdict.upper()}  {run.experiment}  {run_id}")
    return 0


def report(store: Store, run_id: str) -> int:
    """Write a run's report again, from what is stored."""
    print(write_report(store, _manifest(store, run_id)))
    return 0


def verify(store: Store, run_id: str | None) -> int:
    """Check the size and digest of every file of one run, or of all."""
    bad = 0
    for each in [pick(store, run_id)] if run_id else store.runs():
        try:
            store.verify(each)
        except StoreError as error:
            bad += 1
            print(f"{each}: {error}")
    orphans = store.orphans()
    for orphan in orphans:
        print(f"{orphan}: left by a commit that did not finish; no reader sees it")
    print(f"{bad} damaged" if bad else "every file is as it was committed")
    return 1 if bad else 0
