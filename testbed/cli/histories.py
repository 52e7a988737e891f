"""`testbed results changes`: the change points of histories in a user's files."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from results.contract.texts import digits, plural
from results.render import NOTHING, document, table
from results.series.calculator import FEWEST_RUNS_TO_JUDGE
from results.series.changes import ChangePoint, SeriesChanges
from results.series.changes import changes as changes_of
from results.series.series_file import SeriesFile, SeriesFileError, read
from testbed.errors import UsageError

HEADER = (
    "SERIES",
    "KIND",
    "FOR THE",
    "FIRST BAD ← LAST GOOD",
    "BEFORE → AFTER",
    "CHANGE",
    "95 % INTERVAL",
    "P",
    "REPORTED AT",
)


HistoryChanges = tuple[Path, SeriesFile, Mapping[str, SeriesChanges]]
"""A file, its series, and the changes found in it."""


def changes(args: argparse.Namespace) -> int:
    """Judge each file as the nights of a store of its own; return 2 when every series was too short, else 0."""
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: expected 0 or more")
    # All files are read before any is judged, so that a mistake in the last one is reported at once.
    read_in = [(file, _read(file, args)) for file in args.file]
    found = []
    for file, content in read_in:
        runs = plural(len(content.labels), "run")
        print(f"{file}: {runs}, {len(content.series)} series", file=sys.stderr, flush=True)
        found.append((file, content, changes_of(content.series, better=args.better, seed=args.seed)))
    if args.json:
        print(document({"seed": args.seed, "better": args.better, "files": [as_json(each) for each in found]}))
    else:
        print("\n\n".join(as_text(each) for each in found))
    return 2 if all(one.too_few for _, _, series in found for one in series.values()) else 0


def _read(file: Path, args: argparse.Namespace) -> SeriesFile:
    try:
        return read(file, args.time, args.column)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from error
    except SeriesFileError as error:
        raise UsageError(str(error)) from error


def as_text(history: HistoryChanges) -> str:
    """Return a line per change, the notes on the file, and a summary."""
    file, content, series = history
    labels = content.labels
    rows = [_row(name, each, labels) for name, one in series.items() for each in one.changes]
    short = [f"{name} ({one.used})" for name, one in series.items() if one.too_few]
    changed = sum(1 for one in series.values() if one.changes)
    counts = f"{plural(len(rows), 'change')} in {changed} of {len(series)} series, {plural(len(labels), 'run')}"
    summary = f"{file}: {counts}"
    if short:
        summary += f"; too few values to say anything, of {FEWEST_RUNS_TO_JUDGE} it takes: {', '.join(short)}"
    return "\n".join([*([table(HEADER, rows), ""] if rows else []), *content.notes, summary])


def _row(name: str, each: ChangePoint, labels: Sequence[str]) -> tuple[str, ...]:
    return (
        name,
        each.kind,
        NOTHING if each.meaning == "unknown" else each.meaning,
        f"{labels[each.first_bad]} ← {labels[each.last_good]}",
        f"{digits(each.before)} → {digits(each.after)}",
        digits(each.after - each.before, sign="+") if each.effect is None else f"{each.effect:+.1%}",
        # A fraction of the level before, or in the series' own unit where that level is 0.
        " to ".join(digits(end, sign="+") for end in each.difference)
        if each.interval is None
        else "{:+.1%} to {:+.1%}".format(*each.interval),
        f"{each.p:.2g}",
        labels[each.reported],
    )


def as_json(history: HistoryChanges) -> dict[str, Any]:
    """Return the changes as one object. It names a run by its label and its index, from 0 in the order of judgement."""
    file, content, found = history
    labels = content.labels

    def run(at: int) -> dict[str, Any]:
        return {"index": at, "label": labels[at]}

    series = [
        {
            "series": name,
            "runs": one.runs,
            "used": one.used,
            "too_few": one.too_few,
            "changes": [
                asdict(each)
                | {"first_bad": run(each.first_bad), "last_good": run(each.last_good), "reported": run(each.reported)}
                for each in one.changes
            ],
        }
        for name, one in found.items()
    ]
    return {"file": file, "runs": len(labels), "notes": content.notes, "series": series}
