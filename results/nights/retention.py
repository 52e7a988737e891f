"""Retention: which runs a store keeps.

Runs are dropped for readers in one step, by the index; their files stay for a while, as those of a compaction do. A run
that a reported change of a series names is a baseline, and is kept whatever its age.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import TypeVar

from results.contract.maintenance import GRACE, drop, locked, sweep
from results.contract.manifest import Manifest
from results.contract.store import Store, StoreError
from results.series.history import History, unsealed

T = TypeVar("T")
HISTORIES = "histories"
"""Folder of a store with the reported changes of its series: files `*.json`, a `History` in each line but the first
(see `sealed`)."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Which runs of each experiment are kept: the `newest` ones, and all younger than `younger`. None: not by that."""

    newest: int | None = None
    younger: timedelta | None = None

    def __post_init__(self) -> None:
        if self.newest is None and self.younger is None:
            raise ValueError("nothing to keep: say how many runs of each experiment, or how young ones, or both")
        if (self.newest or 0) < 0 or (self.younger or timedelta()) < timedelta():
            raise ValueError("a number of runs and an age are not negative")


@dataclass(slots=True)
class RetentionResult:
    """Runs that were dropped (or would be), runs kept although the rule drops them, and paths removed."""

    gone: list[str] = field(default_factory=list)
    protected: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def protected_runs(store: Store) -> set[str]:
    """Return the runs that a reported change names. Raise StoreError for a history that cannot be read."""
    otherwise = (
        "which runs are baselines is not known, so none is removed: put a whole copy there, or remove the file and "
        "let `testbed results judge` find its changes again"
    )
    found = set()
    for path in sorted(f.path for f in store.files.list(HISTORIES)):
        name = PurePosixPath(path).name
        if name.startswith(".") or not name.endswith(".json"):
            continue
        for history in read_lines(store.files.read(path), f"{store.location}/{path}", History.from_json, otherwise):
            found |= {run for each in history.reported for run in (each.first_bad, each.last_good, each.found)}
    return found


def read_lines(data: bytes, source: str, parse: Callable[[str], T], otherwise: str) -> Iterator[T]:
    """Yield what `parse` makes of each history of a file. Raise StoreError, with what to do `otherwise`."""
    where = source
    try:
        for number, line in unsealed(data):
            where = f"{source}, line {number}"
            yield parse(line)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{where}: not a history: {error}; {otherwise}") from error


def leaving(runs: Collection[Manifest], rule: RetentionRule, now: datetime) -> list[str]:
    """Return the ids of the runs that the rule does not keep."""
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
    rule: RetentionRule,
    *,
    keep: Collection[str] = (),
    grace: timedelta = GRACE,
    dry_run: bool = False,
    now: datetime | None = None,
) -> RetentionResult:
    """Drop the runs that the rule does not keep, but no run in `keep` and no baseline.

    A run whose manifest cannot be read is kept and named. Raise StoreError when the store cannot be written or is
    locked, or a history cannot be read.
    """
    moment = now or datetime.now(UTC)
    with contextlib.nullcontext() if dry_run else locked(store):
        scan = store.scan()
        safe = protected_runs(store) | set(keep)
        old = leaving(scan.manifests, rule, moment)
        done = RetentionResult(problems=list(scan.problems), protected=[r for r in old if r in safe])
        done.gone = [r for r in old if r not in safe]
        if dry_run:
            return done
        done.removed = sweep(store, moment, grace)
        if done.gone:
            done.problems += drop(store, done.gone, moment).problems
            done.removed += sweep(store, moment, grace)
    return done
