"""Time the testbed's own commands on this machine."""

import argparse
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from results.render import document, table
from testbed.cli.output import timed_progress

if TYPE_CHECKING:
    from testbed.runner.bench import BenchResult


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="only these; `--list` prints them (default: all)")
    parser.add_argument("--list", action="store_true", help="print the figures and their commands; play none")
    parser.add_argument("--repeats", metavar="N", type=int, default=3, help="plays of each figure (default: 3)")
    parser.add_argument("--store", metavar="URI", help="the store of the plays (default: a store of their own)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = (
        "Example: `testbed bench up-two-brokers demo`.\n"
        "`testbed results judge --store STORE --report FILE` draws each figure over its plays, with commits.\n"
        "Exit codes: 0 every command succeeded within its limit, 1 one did not."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.runner.bench import chosen, run_bench

    if args.list:
        rows = [(each.name, each.summary, f"testbed {' '.join(each.words)}") for each in chosen(args.figures)]
        print(table(("FIGURE", "WHAT", "COMMAND"), rows))
        return 0
    result = run_bench(args.figures, args.repeats, args.store, timed_progress())
    print(as_json(result) if args.json else as_text(result))
    return result.exit_code


def as_text(result: "BenchResult") -> str:
    """Return a line for each figure with its times in seconds, the failures, and the store of the plays."""
    rows = [
        (
            row.figure.name,
            _seconds(median(row.seconds) if row.seconds else None),
            f"{min(row.seconds):.1f} to {max(row.seconds):.1f}" if row.seconds else "–",
            _seconds(sum(row.cpu_s) / len(row.cpu_s) if row.cpu_s else None),
            _seconds(row.figure.limit_s),
            ", ".join(f"{count} {verdict}" for verdict, count in Counter(row.verdicts).items()),
        )
        for row in result.rows
    ]
    failed = [f"{row.figure.name}: {row.message}" for row in result.rows if row.message]
    return "\n".join(
        [table(("FIGURE", "MEDIAN s", "RANGE s", "CPU s", "LIMIT s", "PLAYS"), rows), *failed, f"store {result.store}"]
    )


def as_json(result: "BenchResult") -> str:
    """Return one JSON document: times in seconds, the store, and the ids of the runs."""
    return document(
        {
            "figures": [
                {
                    "name": row.figure.name,
                    "summary": row.figure.summary,
                    "command": ["testbed", *row.figure.words],
                    "limit_s": row.figure.limit_s,
                    "seconds": row.seconds,
                    "cpu_seconds": row.cpu_s,
                    "verdicts": row.verdicts,
                    "message": row.message,
                }
                for row in result.rows
            ],
            "store": result.store,
            "runs": result.runs,
        }
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
