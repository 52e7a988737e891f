"""List, show, report, export, import, maintain and judge the runs of a store."""

import argparse
from pathlib import Path

from testbed.argument_parser import Parser
from testbed.cli.options import add_earlier, add_formats, add_judging, add_repeatable, parsed
from testbed.cli.run_selection import add_choice, chosen_by, parse_age
from testbed.errors import TestbedError
from testbed.units import parse_size


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
    listing = actions.add_parser("list", help="list the runs; exit code 1 when one cannot be read")
    listing.add_argument("--json", action="store_true", help="print one JSON document")
    show = actions.add_parser("show", help="show a run's criteria, as they were judged when it was recorded")
    show.add_argument("--json", action="store_true", help="print one JSON document")
    report = actions.add_parser("report", help="judge a run by today's rules, and write its report again")
    verify = actions.add_parser("verify", help="compare every file with its digest; exit code 1 when one differs")
    verify.add_argument("--quarantine", action="store_true", help="move damaged runs to the folder `aside`")
    export = actions.add_parser(
        "export", help="write an archive of the named or selected runs; exit code 1 when one is left out"
    )
    export.add_argument("run", nargs="*", metavar="RUN", help="the id of a run")
    out = export.add_mutually_exclusive_group(required=True)
    out.add_argument("--out", metavar="FILE", type=Path, help="the archive to write, a tar file")
    add_earlier(out, "--to", "out", Path)
    for action in (listing, export):
        add_choice(action)
    importing = actions.add_parser(
        "import", help="add the runs of archives to the store, each once; exit code 1 when one is left out"
    )
    importing.add_argument("archive", nargs="+", metavar="FILE", type=Path, help="an archive that `export` wrote")
    compact = actions.add_parser("compact", help="rewrite many small files as few larger ones, while others read")
    compact.add_argument(
        "--target", metavar="SIZE", default="128MiB", help="about the size of a pack (default: 128MiB)"
    )
    retain = actions.add_parser("retain", help="drop old runs, except the ones that a reported change names")
    retain.add_argument("--newest", metavar="N", type=int, help="keep the newest N of each experiment")
    retain.add_argument(
        "--max-age", metavar="AGE", help="keep younger runs, such as 90d; with --newest, either is enough"
    )
    add_repeatable(retain, "--keep", "RUN", "also keep this run; repeatable")
    retain.add_argument("--dry-run", action="store_true", help="print the runs that would go; change nothing")
    for action in (compact, retain):
        action.add_argument(
            "--grace", metavar="AGE", default="24h", help="how long replaced files stay for readers (default: 24h)"
        )
    for action in (show, report, verify):
        what = "all" if action is verify else "the newest"
        action.add_argument("run", nargs="?", metavar="RUN", help=f"the id of a run (default: {what})")
    nights = _configure_nights(actions)
    _configure_changes(actions)
    for action in (listing, show, report, verify, export, importing, compact, retain, *nights):
        action.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")


def _configure_nights(actions: "argparse._SubParsersAction[Parser]") -> tuple[Parser, ...]:
    judge = actions.add_parser(
        "judge", help="judge all runs of the store: has anything changed? Prints a line for each scenario"
    )
    judge.add_argument("--experiment", metavar="NAME", action="append", help="judge only this experiment; repeatable")
    add_formats(judge)
    judge.add_argument("--junit", metavar="FILE", type=Path, help="also write JUnit's XML to this file")
    judge.add_argument(
        "--report", metavar="FILE", type=Path, help="also write the history as an HTML page to this file"
    )
    add_judging(judge)
    judge.epilog = NIGHT_CODES
    ack = actions.add_parser("ack", help="acknowledge a change: it becomes the new baseline")
    ack.add_argument(
        "series", nargs="+", metavar="SERIES", help="an id that `judge` prints, EXPERIMENT or EXPERIMENT:METRIC"
    )
    ack.add_argument("--reason", metavar="TEXT", required=True, help="why the change is accepted")
    ack.add_argument("--run", metavar="RUN", help="only the change that begins with this run")
    ack.add_argument("--by", metavar="NAME", help="who says so (default: your user name)")
    return judge, ack, *_configure_policies(actions)


NIGHT_CODES = (
    "Exit codes: 0 OK, IMPROVED, LEARNING or MUTED; 1 FAILED, BELOW-FLOOR or REGRESSED;\n"
    "2 ENV-CHANGED, NO-DATA or NOISY. 1 takes precedence."
)


def _configure_policies(actions: "argparse._SubParsersAction[Parser]") -> tuple[Parser, Parser]:
    mute = actions.add_parser(
        "mute", help="mute series: they decide no night until a date; without SERIES: list the mutes"
    )
    mute.add_argument("--reason", metavar="TEXT", help="why the series is muted")
    mute.add_argument(
        "--until", metavar="WHEN", help="a date, a time, or a duration from now, such as 2026-12-24 or 14d"
    )
    mute.add_argument("--by", metavar="NAME", help="who says so (default: your user name)")
    floor = actions.add_parser("floor", help="set a limit that no run may exceed; without SERIES: list the floors")
    floor.add_argument("--never-above", metavar="VALUE", type=float, help="the highest value, in the measure's unit")
    floor.add_argument("--never-below", metavar="VALUE", type=float, help="the lowest value, in the measure's unit")
    for parser, what in ((mute, "mute"), (floor, "floor")):
        parser.add_argument(
            "series",
            nargs="*",
            metavar="SERIES",
            help="EXPERIMENT:METRIC, 'EXPERIMENT NAME=VALUE:METRIC', or an id that `judge` prints",
        )
        parser.add_argument("--remove", action="store_true", help=f"remove this {what}")
    return mute, floor


def _configure_changes(actions: "argparse._SubParsersAction[Parser]") -> None:
    changes = actions.add_parser("changes", help="find the change points of any history in CSV, TSV or JSON files")
    changes.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        type=Path,
        help="CSV or TSV with a header; JSON: numbers, lists by name, or records",
    )
    changes.add_argument(
        "--time", metavar="COLUMN", help="the column with the runs' labels; numbers and ISO dates also sort the runs"
    )
    add_repeatable(changes, "--column", "NAME", "judge only this column (default: every column of numbers); repeatable")
    changes.add_argument("--better", choices=("lower", "higher"), help="the direction in which all series are better")
    changes.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the shuffles (default: 1)")
    changes.add_argument("--json", action="store_true", help="print one JSON document")
    changes.epilog = (
        "Example: `testbed results changes history.csv --time date --better lower`.\n"
        "The command judges each run of a file in its turn, and nothing of tonight; `results judge` does that.\n"
        "Exit codes: 0 the files were judged, whatever was found; 2 no series has ten values."
    )


def run(args: argparse.Namespace) -> int:
    if args.action == "changes":
        from testbed.cli import histories

        return histories.changes(args)
    from results.contract.store import NoRunError, StoreError

    try:
        return _run_on_store(args)
    except NoRunError as error:
        raise TestbedError(str(error)) from error
    except StoreError as error:
        aside = "`testbed results verify --quarantine` moves damaged runs to the folder `aside`"
        raise TestbedError(f"{error}; {aside}") from error


def _run_on_store(args: argparse.Namespace) -> int:
    from testbed.cli import nights, runs, store_maintenance
    from testbed.experiments.reports import open_store

    store = open_store(args.store)
    match args.action:
        case "list":
            return runs.list_runs(store, chosen_by(args), as_json=args.json)
        case "verify":
            return runs.verify(store, args.run, aside=args.quarantine)
        case "export":
            return store_maintenance.export(store, args.out, args.run, chosen_by(args))
        case "import":
            return store_maintenance.import_(store, args.archive)
        case "compact":
            target = parsed("--target", args.target, parse_size)
            return store_maintenance.compact_(store, parse_age("--grace", args.grace), target)
        case "retain":
            return store_maintenance.retain_(store, args)
        case "mute":
            return store_maintenance.mute(store, args)
        case "floor":
            return store_maintenance.floor(store, args)
        case "ack":
            return nights.ack(store, args)
        case "judge":
            return nights.judge(store, args)
        case "show":
            return runs.show(store, runs.pick(store, args.run), as_json=args.json)
    return runs.report(store, runs.pick(store, args.run))
