"""`testbed results export|import|compact|retain`: the maintenance of a store's runs."""

import argparse
from datetime import timedelta
from pathlib import Path

from results.contract.archive import ArchiveError, ImportResult, export_runs, import_runs
from results.contract.maintenance import compact
from results.contract.store import Store, StoreError
from results.nights.retention import RetentionRule, retain
from testbed.cli.run_selection import Choice, parse_age
from testbed.errors import TestbedError, UsageError


def export(store: Store, target: Path, run_ids: list[str], choice: Choice) -> int:
    """Write an archive of the named or the selected runs; return 1 when one is left out."""
    known = store.runs()
    if unknown := sorted(set(run_ids) - set(known)):
        raise UsageError(f"{store.location} has no run {', '.join(unknown)}; `testbed results list` lists them")
    scan = store.scan()
    problems = [] if run_ids else list(scan.problems)
    chosen = run_ids or [m.run_id for m in scan.manifests if choice.fits(m)]
    if not chosen:
        raise UsageError(f"no run of {store.location} is chosen: nothing to export")
    try:
        written, damaged = export_runs(store, chosen, target)
    except OSError as error:
        raise TestbedError(f"{target} cannot be written: {error.strerror or error}") from error
    _tell("left out", problems + damaged)
    print(f"{target}: {len(written)} runs")
    return 1 if problems or damaged else 0


def import_(store: Store, sources: list[Path]) -> int:
    """Import the runs of archives, and keep runs that exist; return 1 when a run is not imported.

    If an archive cannot be read, import the others and then raise its error.
    """
    bad = 0
    failed: list[TestbedError] = []
    for source in sources:
        try:
            done = _imported(store, source)
        except TestbedError as error:
            if len(sources) == 1:
                raise
            failed.append(error)
            _tell("not imported", [str(error)])
            continue
        _tell("not imported", done.problems)
        print(f"{source}: {len(done.new)} new runs, {len(done.known)} there already")
        bad += len(done.problems)
    if failed:
        told = "; ".join(map(str, failed))
        raise type(failed[0])(f"{len(failed)} of {len(sources)} archives could not be imported: {told}")
    return 1 if bad else 0


def _imported(store: Store, source: Path) -> ImportResult:
    # Imported here: the other actions on a store need no experiment.
    from testbed.experiments.record import noted

    try:
        return import_runs(store, source, lambda run_id: noted(run_id, store.location))
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror or error}") from error
    except ArchiveError as error:
        raise UsageError(str(error)) from error
    except StoreError as error:
        raise TestbedError(f"{source}: {error}") from error


def compact_(store: Store, grace: timedelta, target_bytes: int) -> int:
    """Merge many small files into few larger ones; return the exit code."""
    try:
        done = compact(store, grace=grace, target_bytes=target_bytes)
    except StoreError as error:
        raise TestbedError(str(error)) from error
    _tell("left as it is", done.problems)
    print(f"{done.runs} runs in {len(done.packs)} new packs; {len(done.removed)} replaced files and folders removed")
    return 1 if done.problems else 0


def retain_(store: Store, args: argparse.Namespace) -> int:
    """Drop runs by number and age, but none that a baseline needs; return the exit code."""
    younger = None if args.max_age is None else parse_age("--max-age", args.max_age)
    if unknown := sorted(set(args.keep) - set(store.runs())):
        raise UsageError(f"--keep: {store.location} has no run {', '.join(unknown)}")
    try:
        rule = RetentionRule(args.newest, younger)
    except ValueError as error:
        raise UsageError(f"{error}: --newest, --max-age") from error
    grace = parse_age("--grace", args.grace)
    try:
        done = retain(store, rule, keep=args.keep, grace=grace, dry_run=args.dry_run)
    except StoreError as error:
        raise TestbedError(str(error)) from error
    for run_id in done.protected:
        print(f"{run_id}: stays, since a baseline rests on it or --keep names it")
    for run_id in done.gone:
        print(f"{run_id}: {'would go' if args.dry_run else 'gone'}")
    _tell("stays", done.problems)
    print(f"{len(done.gone)} runs {'would go' if args.dry_run else 'gone'}")
    return 1 if done.problems else 0


def _tell(what: str, problems: list[str]) -> None:
    for problem in problems:
        print(f"{what}: {problem}")
