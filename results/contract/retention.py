"""Retention: which runs a store keeps, and setting damaged ones aside.

What goes is gone for readers in one step, by the index; its files stay for a while, as those of a compaction do. Runs
that a reported change of a series names are kept whatever their age: without them nobody could say what the baseline
rests on.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from results.contract.catalogue import StoreError
from results.contract.compaction import GRACE, locked, stamp, sweep, switch, without
from results.contract.manifest import Manifest
from results.contract.store import Store
from results.series.history import History, Reported, unsealed

HISTORIES = "histories"
"""Folder of a store with what was reported of its series: files `*.json`, a `History` in each line but the first (see
`sealed`)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is kept of each experiment: the `newest` runs, and all younger than `younger`. None: not by that."""

    newest: int | None = None
    younger: timedelta | None = None

    def __post_init__(self) -> None:
        if self.newest is None and self.younger is None:
            raise ValueError("nothing to keep: say how many runs of each experiment, or how young ones, or both")
        if (self.newest or 0) < 0 or (self.younger or timedelta()) < timedelta():
            raise ValueError("a number of runs and an age are not negative")


@dataclass(slots=True)
class Retained:
    """Runs that went (or would), runs kept only because a baseline rests on them, and paths taken away."""

    gone: list[str] = field(default_factory=list)
    protected: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def protected_runs(store: Store) -> set[str]:
    """Runs that a reported change names. Raises StoreError for a history that cannot be read: nothing may go then."""
    found = set()
    for path in sorted(f.path for f in store.files.list(HISTORIES)):
        name = PurePosixPath(path).name
        if name.startswith(".") or not name.endswith(".json"):
            continue
        for reported in _reported(store.files.read(path), f"{store.location}/{path}"):
            found |= {run for each in reported for run in (each.first_bad, each.last_good, each.found)}
    return found


def _reported(data: bytes, source: str) -> Iterator[tuple[Reported, ...]]:
    where = source
    try:
        for number, line in unsealed(data):
            where = f"{source}, line {number}"
            yield History.from_json(line).reported
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{where}: not a history: {error}; which runs are baselines is not known, so none is removed: put a whole "
            "copy there, or remove the file and let `testbed results judge` find its changes anew"
        ) from error


def leaving(runs: Collection[Manifest], rule: Rule, now: datetime) -> list[str]:
    """The runs, by id, that the rule does not keep; pure."""
    gone = []
    for experiment in sorted({run.experiment for run in runs}):
        ids = sorted((m.run_id for m in runs if m.experiment == experiment), reverse=True)
        old = ids if rule.newest is None else ids[rule.newest :]
        if rule.younger is not None:
            limit = f"{(now - rule.younger).astimezone(UTC):%Y%m%dT%H%M%SZ}"
            old = [run_id for run_id in old if run_id < limit]
        gone += old
    return sorted(gone)


def retain(
    store: Store,
    rule: Rule,
    *,
    keep: Collection[str] = (),
    grace: timedelta = GRACE,
    dry_run: bool = False,
    now: datetime | None = None,
) -> Retained:
    """Drop what the rule does not keep, but no run in `keep` and none that a baseline rests on.

    A run whose manifest cannot be read is kept and named. Raises StoreError when the store cannot be written or is
    locked, or a history cannot be read.
    """
    moment = now or datetime.now(UTC)
    with contextlib.nullcontext() if dry_run else locked(store):
        scan = store.scan()
        safe = protected_runs(store) | set(keep)
        old = leaving(scan.manifests, rule, moment)
        done = Retained(problems=list(scan.problems), protected=[r for r in old if r in safe])
        done.gone = [r for r in old if r not in safe]
        if dry_run:
            return done
        done.removed = sweep(store, moment, grace)
        packs, written, problems = without(store, set(done.gone), moment)
        held = {r for r, pack in store.catalogue.places().items() if pack not in packs}
        done.problems += problems
        done.gone = [r for r in done.gone if r not in held]
        dropped = {**store.catalogue.index().dropped, **dict.fromkeys(done.gone, stamp(moment))}
        if done.gone:
            switch(store, packs, written, moment, dropped=dropped)
            done.removed += sweep(store, moment, grace)
    return done


def set_aside(store: Store, damaged: Mapping[str, str], now: datetime | None = None) -> list[str]:
    """Move runs (id -> what is wrong with it) to `aside/`, so that nothing else meets them; what is left of each
    is there with its manifest. A pack of which a file is damaged is written again from what is whole in it.

    Returns the runs that were moved: one that has gone since it was looked at stays gone, and what nights know of it
    stays known. Raises StoreError when the store cannot be written or is locked.
    """
    moment = now or datetime.now(UTC)
    with locked(store):
        there = set(store.runs())
        damaged = {run_id: problem for run_id, problem in damaged.items() if run_id in there}
        for run_id, problem in damaged.items():
            for name, data in _remains(store, run_id):
                store.files.put(f"aside/{run_id}/{name}", data)
            store.files.put(f"aside/{run_id}/problem.txt", f"{problem}\n".encode())
        catalogue = store.catalogue
        hurt = [pack.id for pack in catalogue.index().packs if any(map(catalogue.file_problem, pack.files))]
        packs, written, problems = without(store, set(damaged), moment, hurt)
        held = {r for r, pack in store.catalogue.places().items() if pack not in packs}
        moved = {run_id: problem for run_id, problem in damaged.items() if run_id not in held}
        switch(store, packs, written, moment, aside={**store.catalogue.index().aside, **moved})
        for run_id in moved:
            store.files.discard(f"manifests/{run_id}.json")
            store.files.discard(f"runs/{run_id}")
    if problems:
        raise StoreError("; ".join(problems))
    return sorted(moved)


def _remains(store: Store, run_id: str) -> Iterator[tuple[str, bytes]]:
    """What can still be read of a run, whatever is wrong with it."""
    for path in (f"manifests/{run_id}.json", *(f.path for f in store.files.list(f"runs/{run_id}"))):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            yield PurePosixPath(path).name, store.files.read(path)
    if run_id not in store.catalogue.places():
        return
    with contextlib.suppress(StoreError):
        manifest = store.manifest(run_id)
        yield "manifest.json", manifest.to_json().encode()
        for entry in manifest.files:
            with contextlib.suppress(FileNotFoundError):
                yield f"{entry.kind}.part", store.files.read_part(entry.path, entry.offset, entry.bytes)
