"""`testbed results list|show|report|verify`: the runs of a store."""

from collections.abc import Callable

from results.contract.defect import in_words
from results.contract.maintenance import set_aside
from results.contract.manifest import Manifest
from results.contract.store import NoRunError, Store, StoreError
from results.criteria import judge
from results.criteria.judgement import changes, skipped, skipped_lines
from results.nights import policies, state, values_table
from results.nights.retention import protected_runs
from results.render import document, table
from testbed.cli.store_maintenance import store_errors
from testbed.cli.verdicts import criterion_lines, defect_lines
from testbed.errors import UsageError
from testbed.experiments.reports import write_report


def pick(store: Store, run_id: str | None) -> str:
    """Return the id of the named run, or of the newest one. Raise `UsageError` when it does not exist."""
    runs = store.runs()
    if run_id is None:
        if not runs:
            raise UsageError(f"{store.location} has no runs yet; `testbed run kip73-two-node` makes one")
        return runs[-1]
    if run_id not in runs:
        raise UsageError(f"{store.location} has no run {run_id}; `testbed results list` lists them")
    return run_id


def list_runs(store: Store, fits: Callable[[Manifest], bool] | None, *, as_json: bool = False) -> int:
    """Print one line for each selected run, oldest first; return 1 when a run cannot be read."""
    scan = store.scan()
    runs = [run for run in scan.manifests if fits is None or fits(run)]
    if as_json:
        print(document({"store": store.location, "runs": [_row(run) for run in runs], "problems": scan.problems}))
        return 1 if scan.problems else 0
    rows = [(m.run_id, m.experiment, m.verdict, ", ".join(sorted(set(m.versions.kafka.values())))) for m in runs]
    if rows:
        print(table(("RUN", "EXPERIMENT", "VERDICT", "KAFKA"), rows))
    else:
        print(f"no runs in {store.location}" if not scan.manifests else f"no such runs in {store.location}")
    for problem in scan.problems:
        print(f"unreadable: {problem}")
    return 1 if scan.problems else 0


def _row(run: Manifest) -> dict[str, object]:
    return {
        "run": run.run_id,
        "experiment": run.experiment,
        "verdict": run.verdict,
        "kafka": run.versions.kafka,
        "started": run.started,
        "ended": run.ended,
        "defects": in_words(run.defects),
        "packed": any(file.packed for file in run.files),
    }


def show(store: Store, run_id: str, *, as_json: bool = False) -> int:
    """Print a run's criteria; return the exit code. Raise StoreError when they cannot be read."""
    run = store.manifest(run_id)
    if as_json:
        print(document({**_row(run), "parameters": run.parameters, "criteria": store.criteria(run_id)}))
        return 0
    print(
        "\n".join([*defect_lines(run.defects), *criterion_lines(store.criteria(run_id)), *skipped_lines(skipped(run))])
    )
    print(f"\n{run.verdict.upper()}  {run.experiment}  {run_id}")
    return 0


def report(store: Store, run_id: str) -> int:
    """Write a run's report again, judged by today's rules; return 0. Raise StoreError when the run cannot be read."""
    run = store.manifest(run_id)
    again = judge(run, store.samples(run_id), store.events(run_id))
    print(write_report(store, run, again))
    changed = changes(store.criteria(run_id), again.criteria)
    if changed:
        print(f"recorded as {run.verdict.upper()}; by the rules of today {again.verdict.upper()}:")
        print("\n".join(f"  {each}" for each in changed))
    return 0


def verify(store: Store, run_id: str | None, *, aside: bool = False) -> int:
    """Check every file of one run, or of all; return 1 when one is damaged. With `aside`, move damaged runs aside."""
    damaged = _damaged(store, [pick(store, run_id)] if run_id else store.runs())
    others = [] if run_id else _damaged_files(store)
    for each, problem in damaged.items():
        print(f"{each}: {problem}")
    for problem in others:
        print(problem)
    for orphan in store.orphans():
        print(f"{orphan}: left by a commit that did not finish; no reader sees it")
    for each in store.catalogue.index().aside:
        print(f"{each}: was set aside, in {store.location}/aside/{each}")
    if damaged and aside:
        with store_errors():
            moved = set_aside(store, damaged)
        print(f"{len(moved)} set aside, in {store.location}/aside")
    bad = len(damaged) + len(others)
    print(f"{bad} damaged" if bad else "every file is as it was committed")
    return 1 if bad else 0


def _damaged(store: Store, run_ids: list[str]) -> dict[str, str]:
    found = {}
    for run_id in run_ids:
        try:
            store.verify(run_id)
        except NoRunError:  # retention removed the run meanwhile, which is no damage
            continue
        except StoreError as error:
            found[run_id] = str(error)
    return found


def _damaged_files(store: Store) -> list[str]:
    """Return the damage of index, values, histories and policies. A missing part of the values was merged meanwhile."""
    problems = [problem] if (problem := store.catalogue.problem()) else []
    for path in values_table.paths(store):
        try:
            values_table.read(store, path)
        except FileNotFoundError:
            continue
        except StoreError as error:
            problems.append(f"{error}; `testbed results judge` sets it aside and takes its runs in again")
    try:
        state.load(store)  # before the retention, which reads the same file: this error also names the repair
        protected_runs(store)
    except StoreError as error:
        problems.append(str(error))
    try:
        policies.load(store)
    except StoreError as error:
        problems.append(str(error))
    return problems
