"""The result of `testbed bench`, for users and for programs."""

from collections.abc import Sequence

from results.render import document, table
from testbed.runner.bench import BenchResult, BenchRow, TimedCommand


def figures_text(figures: Sequence[TimedCommand]) -> str:
    """Return a line for each figure: its name, what it is, and its command."""
    rows = [(each.name, each.summary, f"testbed {' '.join(each.words)}") for each in figures]
    return table(("FIGURE", "WHAT", "COMMAND"), rows)


def as_text(result: BenchResult) -> str:
    """Return a line for each figure with its times in seconds, the failures, and where the plays are kept."""
    rows = [
        (
            row.figure.name,
            _seconds(row.median_s),
            f"{min(row.seconds):.1f} to {max(row.seconds):.1f}" if row.seconds else "–",
            _seconds(sum(row.cpu_s) / len(row.cpu_s) if row.cpu_s else None),
            _seconds(row.figure.limit_s),
            _verdicts(row),
        )
        for row in result.rows
    ]
    failed = [f"{row.figure.name}: {row.message}" for row in result.rows if row.message]
    return "\n".join(
        [table(("FIGURE", "MEDIAN s", "RANGE s", "CPU s", "LIMIT s", "PLAYS"), rows), *failed, f"store {result.store}"]
    )


def as_json(result: BenchResult) -> str:
    """Return one JSON document: times in seconds, the store, and the ids of the runs."""
    return document(
        {
            "figures": [
                {
                    "name": row.figure.name,
                    "summary": row.figure.summary,
                    "command": ["testbed", *row.figure.words],
                    "limit_s": row.figure.limit_s,
                    "seconds": list(row.seconds),
                    "cpu_seconds": list(row.cpu_s),
                    "verdicts": list(row.verdicts),
                    "message": row.message,
                }
                for row in result.rows
            ],
            "store": result.store,
            "runs": list(result.runs),
        }
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _verdicts(row: BenchRow) -> str:
    """Return `3 pass`, or `2 pass, 1 fail`."""
    kinds = list(dict.fromkeys(row.verdicts))
    return ", ".join(f"{row.verdicts.count(kind)} {kind}" for kind in kinds)
