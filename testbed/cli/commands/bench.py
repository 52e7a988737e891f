"""`testbed bench`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="only these (default: all; `--list` prints them)")
    parser.add_argument("--list", action="store_true", help="print the figures, and play none")
    parser.add_argument("--repeats", metavar="N", type=int, default=3, help="plays of each figure (default 3)")
    parser.add_argument("--store", metavar="URI", help="where the plays are kept (default: a store of their own)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.epilog = (
        "`testbed results judge --store STORE --report FILE` draws each figure over its plays, with commits.\n"
        "exit codes: 0 every command ended well within its limit, 1 one did not"
    )


def _run(args: argparse.Namespace) -> int:
    from testbed.cli import benches
    from testbed.cli.output import TimedProgress
    from testbed.runner.bench import chosen, run_bench

    if args.list:
        print(benches.figures_text(chosen(args.figures)))
        return 0
    result = run_bench(args.figures, args.repeats, args.store, TimedProgress())
    print(benches.as_json(result) if args.json else benches.as_text(result))
    return result.exit_code


COMMAND = Command("bench", "time the testbed's own commands on this machine", _configure, _run)
