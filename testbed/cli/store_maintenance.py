"""`testbed results export|import|compact|retain|mute|floor`: the maintenance of a store and of its policies."""

import argparse
import getpass
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from results.contract.aliases import measure_name
from results.contract.archive import ArchiveError, ImportResult, export_runs, import_runs
from results.contract.maintenance import compact, locked
from results.contract.manifest import Manifest
from results.contract.store import Store, StoreError
from results.contract.texts import plural
from results.nights import policies, values_table
from results.nights.policies import Floor, Mute, Policies, SeriesPattern
from results.nights.retention import RetentionRule, retain
from testbed.cli.run_selection import parse_age
from testbed.errors import TestbedError, UsageError

_ID = re.compile("[0-9a-f]{12}")
"""The id of a series."""


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise a `StoreError` of the block as a `TestbedError`."""
    try:
        yield
    except StoreError as error:
        raise TestbedError(str(error)) from error


def export(store: Store, target: Path, run_ids: list[str], fits: Callable[[Manifest], bool] | None) -> int:
    """Write an archive of the named or the selected runs; return 1 when one is left out."""
    if run_ids and fits is not None:
        raise UsageError("name runs, or give options that select runs such as --verdict, not both")
    known = store.runs()
    if unknown := sorted(set(run_ids) - set(known)):
        raise UsageError(f"{store.location} has no run {', '.join(unknown)}; `testbed results list` lists them")
    scan = store.scan()
    problems = [] if run_ids else list(scan.problems)
    chosen = run_ids or [m.run_id for m in scan.manifests if fits is None or fits(m)]
    if not chosen:
        raise UsageError(f"{store.location} has no such run to export; `testbed results list` lists its runs")
    try:
        written, damaged = export_runs(store, chosen, target)
    except OSError as error:
        raise TestbedError(f"{target} cannot be written: {error.strerror or error}") from error
    _tell("left out", problems + damaged)
    print(f"{target}: {plural(len(written), 'run')}")
    return 1 if problems or damaged else 0


def import_(store: Store, sources: list[Path]) -> int:
    """Import the runs of archives, each once; return 1 when one is not. Raise the archives' errors at the end."""
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
        problems = "; ".join(map(str, failed))
        raise type(failed[0])(f"{len(failed)} of {len(sources)} archives could not be imported: {problems}")
    return 1 if bad else 0


def _imported(store: Store, source: Path) -> ImportResult:
    # Imported here: the other actions on a store need no experiment.
    from testbed.experiments.half_runs import noted

    try:
        return import_runs(store, source, lambda run_id: noted(run_id, store.location))
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror or error}") from error
    except ArchiveError as error:
        raise UsageError(str(error)) from error
    except StoreError as error:
        raise TestbedError(f"{source}: {error}") from error


@store_errors()
def compact_(store: Store, grace: timedelta, target_bytes: int) -> int:
    """Merge many small files into few larger ones; return the exit code."""
    done = compact(store, grace=grace, target_bytes=target_bytes)
    _tell("left as it is", done.problems)
    print(f"{done.runs} runs in {len(done.packs)} new packs; {len(done.removed)} replaced files and folders removed")
    return 1 if done.problems else 0


@store_errors()
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
    done = retain(store, rule, keep=args.keep, grace=grace, dry_run=args.dry_run)
    for run_id in done.protected:
        print(f"{run_id}: stays, because a reported change or --keep names it")
    for run_id in done.gone:
        print(f"{run_id}: {'would go' if args.dry_run else 'gone'}")
    _tell("stays", done.problems)
    print(f"{plural(len(done.gone), 'run')} {'would go' if args.dry_run else 'gone'}")
    return 1 if done.problems else 0


def _tell(what: str, problems: list[str]) -> None:
    for problem in problems:
        print(f"{what}: {problem}")


def mute(store: Store, args: argparse.Namespace) -> int:
    """Mute series until a time, end a mute, or print all mutes; return the exit code."""
    now = datetime.now(UTC)
    if args.series and not args.remove and (args.reason is None or args.until is None):
        raise UsageError("mute: give --reason and --until, as --until 14d; --remove ends a mute")

    def changed(known: Policies) -> Policies:
        if args.remove:
            return known.without_mutes(args.series)
        until, at = parse_until(args.until, now).isoformat(timespec="seconds"), now.isoformat(timespec="seconds")
        by = args.by or getpass.getuser()
        return known.muted(Mute(each, args.reason, by, at, until) for each in args.series)

    return _changed(store, args, changed, _mutes, "nothing is muted")


def floor(store: Store, args: argparse.Namespace) -> int:
    """Set a floor, remove it, or print all floors; return the exit code."""
    # Imported here: the other actions on a store need no measure.
    from results.compare.compared_measures import measures

    near_1 = {one.name for one in measures() if one.standing(2.0) != 2.0}

    def changed(known: Policies) -> Policies:
        if args.remove:
            return known.without_floors(args.series)
        for each in args.series:
            metric = SeriesPattern.parse(each).metric
            if metric is None and not _ID.fullmatch(each):
                raise UsageError(f"{each}: a floor is one of a metric; write {each}:METRIC, or an id that judge prints")
            if metric in near_1 and args.never_above is not None:
                raise UsageError(
                    f"{each}: nights judge how near {metric} is to 1, so 1.25 counts as 0.8 and no value is above 1; "
                    "give --never-below, or a floor of highest-11s"
                )
            known = known.floored(Floor(each, args.never_above, args.never_below))
        return known

    return _changed(store, args, changed, _floors, "there is no floor")


@store_errors()
def _changed(
    store: Store,
    args: argparse.Namespace,
    changed: "policies.Change",
    lines: Callable[[Policies], list[str]],
    nothing: str,
) -> int:
    """Change the policies of the named series under the store's lock; print all, and names of no series; return 0."""
    after, known = policies.load(store), set[tuple[str, ...]]()
    if args.series:
        try:
            with locked(store):
                after = changed(policies.load(store))
                policies.save(store, after)
        except ValueError as error:
            raise UsageError(str(error)) from error
        known = values_table.known_series(store)
    for text in args.series:
        if not args.remove and not _fits_any(text, known):
            print(f"{text}: no judged series has this name; it applies to later ones")
    print("\n".join(lines(after) or [nothing]))
    return 0


def _fits_any(text: str, known: Iterable[tuple[str, ...]]) -> bool:
    pattern = SeriesPattern.parse(text)
    return any(
        pattern.fits(series, scenario, experiment, measure_name(metric), json.loads(parameters))
        for series, scenario, experiment, metric, parameters in known
    )


def _mutes(known: Policies) -> list[str]:
    return [f"{each.series}: muted until {each.until} by {each.by}: {each.reason}" for each in known.mutes]


def _floors(known: Policies) -> list[str]:
    rows = []
    for each in known.floors:
        values = (("above", each.never_above), ("below", each.never_below))
        rows.append(
            f"{each.series}: never {', '.join(f'{word} {value:g}' for word, value in values if value is not None)}"
        )
    return rows


def parse_until(text: str, now: datetime) -> datetime:
    """Return the time of a date, a time or an age from now (`14d`). Raise `UsageError` when the text is none."""
    try:
        return policies.moment(text)
    except ValueError:
        return now + parse_age("--until", text)
