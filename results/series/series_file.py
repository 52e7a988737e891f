"""A file with series that a user keeps: CSV, TSV or JSON in; numbers by name and the labels of runs out."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from results.contract.untrusted import parse_json, read_any_text
from results.series.changes import LARGEST

MISSING = frozenset({"", "nan", "null", "na", "none"})
"""Cells, in lower case, that say that a run has no value; so does a number that is infinite."""
VALUES = "values"
"""The name of the series of a plain list."""
_FORMS = "a list of numbers, an object of lists (name → numbers), or a list of objects (one a run)"


class SeriesFileError(ValueError):
    """A file that is no history. The message names file, line (or index), column, what is there, what is expected."""


@dataclass(frozen=True, slots=True)
class SeriesFile:
    """Series by name, all with an entry a run, in the order of the runs; None is a run without a value.

    `labels` say what each run is called; `notes` what was done with the file that its owner should know.
    """

    series: Mapping[str, Sequence[float | None]]
    labels: Sequence[str]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Cells:
    """A file as it is: columns of cells. `word` and `numbers` say where in it a run is (`line 7`, `index 5`);
    `nameless` columns are called by their number, and `others` is no column at all."""

    file: Path
    columns: Mapping[str, Sequence[object]]
    word: str
    numbers: Sequence[int]
    nameless: frozenset[str] = field(default_factory=frozenset)
    others: Sequence[str] = ()

    def place(self, at: int) -> str:
        """Return where a run is, for a message."""
        return f"{self.file}, {self.word} {self.numbers[at]}"


def read(file: Path, time: str | None = None, wanted: Sequence[str] = ()) -> SeriesFile:
    """Return the columns `wanted`, or every one of numbers but `time`, which labels the runs and gives their order.

    Numbers or ISO dates that do not ascend are sorted; other labels stay in the order of the file. Raise
    `SeriesFileError`, and OSError when the file cannot be read.
    """
    try:
        text = read_any_text(file)
    except ValueError as error:
        raise SeriesFileError(f"{file}: {error}") from error
    cells = _from_json(text, file) if _is_json(text, file) else _from_lines(text, file)
    for name in (*wanted, *([] if time is None else [time])):
        if name not in cells.columns:
            raise SeriesFileError(
                f"{file}: there is no column {name!r}; there are: {', '.join(cells.columns) or 'none'}"
            )
    series, notes = _named(cells, wanted) if wanted else _numeric(cells, time)
    labelled: dict[str, Sequence[object]] = {} if time is None else {time: cells.columns[time]}
    runs = _runs(cells, {**series, **labelled})
    if time is None:
        return SeriesFile(series, [f"#{at}" for at in range(runs)], notes)
    order, said = _order(cells, time)
    labels = [_label(cells.columns[time][at], at) for at in order]
    return SeriesFile({name: [values[at] for at in order] for name, values in series.items()}, labels, [*said, *notes])


def _label(cell: object, at: int) -> str:
    return ("" if cell is None else str(cell).strip()) or f"#{at}"


def _is_json(text: str, file: Path) -> bool:
    suffix = file.suffix.lower()
    return suffix == ".json" or (suffix not in (".csv", ".tsv", ".tab") and text.lstrip()[:1] in ("[", "{"))


def _from_lines(text: str, file: Path) -> _Cells:
    """Read CSV or TSV: a header, then a line a run; blank lines are none, nor are lines without a value at the end."""
    reader = csv.reader(
        io.StringIO(text, newline=None), delimiter=_delimiter(text, file), skipinitialspace=True, strict=True
    )
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise SeriesFileError(f"{file}, line {reader.line_num}: {error}") from error
    # A spreadsheet writes separators for rows that once had content. No run without a label may stop the sort.
    while len(rows) > 1 and not any(cell.strip() for cell in rows[-1][1]):
        rows.pop()
    if not rows:
        raise SeriesFileError(f"{file}: empty: expected a header line, then a line for each run")
    (line, header), *body = rows
    if all(_as_number(cell) is not None or _as_date(cell) is not None for cell in header):
        raise SeriesFileError(f"{file}, line {line}: no header: expected the columns' names, as commit,seconds")
    names = [name.strip() or f"column {at}" for at, name in enumerate(header, 1)]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise SeriesFileError(f"{file}, line {line}: two columns are called {name!r}: rename one")
    for number, row in body:
        if len(row) != len(names):
            raise SeriesFileError(f"{file}, line {number}: {len(row)} cells, where the header has {len(names)}")
    columns = {name: [row[at] for _, row in body] for at, name in enumerate(names)}
    nameless = frozenset(name for name, written in zip(names, header, strict=True) if not written.strip())
    return _Cells(file, columns, "line", [number for number, _ in body], nameless)


def _delimiter(text: str, file: Path) -> str:
    """Return the separator: a tab in a TSV; elsewhere the one most frequent in the header."""
    header = text.lstrip("\r\n").partition("\n")[0]
    return "\t" if file.suffix.lower() in (".tsv", ".tab") else max(",;\t", key=header.count)


def _from_json(text: str, file: Path) -> _Cells:
    try:
        found = parse_json(text, pairs=_once)
    except json.JSONDecodeError as error:
        raise SeriesFileError(f"{file}, line {error.lineno}, character {error.colno}: not JSON: {error.msg}") from error
    except ValueError as error:
        raise SeriesFileError(f"{file}: {error}") from error
    if isinstance(found, dict):
        columns = {name: cells for name, cells in found.items() if isinstance(cells, list)}
        if not columns:
            raise SeriesFileError(f"{file}: an object without lists: expected {_FORMS}")
        others = [name for name in found if name not in columns]
        longest = max(len(cells) for cells in columns.values())
        return _Cells(file, columns, "index", range(longest), others=others)
    if not isinstance(found, list):
        raise SeriesFileError(f"{file}: {found!r:.40}: expected {_FORMS}")
    if not any(isinstance(each, dict) for each in found):
        return _Cells(file, {VALUES: found}, "index", range(len(found)))
    for at, each in enumerate(found):
        if not isinstance(each, dict):
            raise SeriesFileError(f"{file}, index {at}: {each!r:.40}: expected an object, as others of the list are")
    names = dict.fromkeys(name for each in found for name in each)
    return _Cells(file, {name: [each.get(name) for each in found] for name in names}, "index", range(len(found)))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} is given twice in one object: rename one")
    return found


def number(cell: object) -> float | None:
    """Return a cell's number; None when it says that there is none. Raise ValueError when it is neither."""
    if cell is None:
        return None
    word = cell.strip() if isinstance(cell, str) else cell
    if isinstance(word, str) and word.lower() in MISSING:
        return None
    # Truth values are numbers in Python, and so is 1_000.
    if isinstance(word, bool) or not isinstance(word, str | int | float) or (isinstance(word, str) and "_" in word):
        raise ValueError(f"{cell!r:.40} is no number")
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{cell!r:.40} is no number") from None
    except OverflowError:
        value = LARGEST * 10
    if not math.isfinite(value):
        return None
    if abs(value) > LARGEST:
        raise ValueError(f"{cell!r:.40} is beyond ± {LARGEST:g}")
    return value


def _parsed(cells: Sequence[object]) -> tuple[list[float | None], dict[int, str]]:
    """Return the numbers of a column, and the index and reason of each cell that is none."""
    values: list[float | None] = []
    bad: dict[int, str] = {}
    for at, cell in enumerate(cells):
        try:
            values.append(number(cell))
        except ValueError as error:
            values.append(None)
            bad[at] = str(error)
    return values, bad


def _named(cells: _Cells, wanted: Sequence[str]) -> tuple[dict[str, list[float | None]], list[str]]:
    """Return the requested columns; a cell in them that is no number is a mistake."""
    series = {}
    for name in wanted:
        values, bad = _parsed(cells.columns[name])
        if bad:
            raise _bad_cell(cells, name, bad)
        series[name] = values
    return series, []


def _numeric(cells: _Cells, time: str | None) -> tuple[dict[str, list[float | None]], list[str]]:
    """Return every column of numbers, and a note about the others.

    One that is mostly numbers is one: any other cell in it is a mistake, and no reason to leave it out.
    """
    series: dict[str, list[float | None]] = {}
    left_out = list(cells.others)
    for name, column in cells.columns.items():
        if name == time:
            continue
        values, bad = _parsed(column)
        numbers = sum(value is not None for value in values)
        if bad and numbers > len(bad):
            raise _bad_cell(cells, name, bad, "; --column chooses other columns")
        if bad or name in cells.nameless:
            left_out.append(name)
        else:
            series[name] = values
    if not series:
        there = ", ".join([*cells.columns, *cells.others]) or "none"
        raise SeriesFileError(f"{cells.file}: no column of numbers; there are: {there}")
    if not left_out:
        return series, []
    way = "" if time is not None else "; --time labels the runs by one of them"
    return series, [f"left out, since they are not named or no numbers: {', '.join(left_out)}{way}"]


def _bad_cell(cells: _Cells, name: str, bad: Mapping[int, str], more: str = "") -> SeriesFileError:
    at, why = next(iter(bad.items()))
    missing = "leave it empty, or null, where a run has no value"
    return SeriesFileError(f"{cells.place(at)}, column {name!r}: {why}; {missing}{more}")


def _runs(cells: _Cells, columns: Mapping[str, Sequence[object]]) -> int:
    """Return the number of runs. Raise `SeriesFileError` when lists of a JSON object differ in length."""
    lengths = {name: len(column) for name, column in columns.items()}
    first, runs = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != runs:
            raise SeriesFileError(
                f"{cells.file}: {name!r} has {length} values, {first!r} has {runs}: an index is the same run in all; "
                "put null where a series has none, or what does not belong together into files of its own"
            )
    return runs


def _as_number(cell: object) -> float | None:
    try:
        return number(cell)
    except ValueError:
        return None


def _as_date(cell: object) -> float | None:
    """Return an ISO date or time in seconds since the epoch; UTC where it does not say."""
    if not isinstance(cell, str):
        return None
    try:
        at = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


_READINGS: Sequence[Callable[[object], float | None]] = (_as_number, _as_date)


def _order(cells: _Cells, time: str) -> tuple[list[int], list[str]]:
    """Return the runs in the order of their time, and a note about the order."""
    column = cells.columns[time]
    as_it_is = list(range(len(column)))
    readings = [[read_as(cell) for cell in column] for read_as in _READINGS]
    best = max(readings, key=lambda keys: sum(key is not None for key in keys))
    keys = [key for key in best if key is not None]
    if len(keys) == len(column):
        order = sorted(as_it_is, key=keys.__getitem__)
        return order, [] if order == as_it_is else [f"sorted by {time}: it did not ascend in the file"]
    if 2 * len(keys) > len(column):
        at = best.index(None)
        problem = f"column {time!r}: {column[at]!r:.40} is no {'number' if best is readings[0] else 'ISO date'}"
        return as_it_is, [f"not sorted by {time}: {cells.place(at)}, {problem}"]
    return as_it_is, []
