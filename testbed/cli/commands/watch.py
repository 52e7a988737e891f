"""`testbed watch NAME`."""

import argparse
from typing import TYPE_CHECKING

from testbed.cli.command import Command

if TYPE_CHECKING:
    from testbed.runner.watch import Watch


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="the testbed; it may be left out when one is up")
    parser.add_argument("--for", dest="time", metavar="TIME", help="end after this time, as 30s")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document a second, each in one line")
    form.add_argument("--web", action="store_true", help="a page for a browser on this machine")
    parser.add_argument("--port", type=int, default=0, help="with --web: its port (default: a free one)")
    parser.epilog = "The view changes nothing. Without a terminal it prints the table once a second. Ctrl-C ends it."


def _run(args: argparse.Namespace) -> int:
    from testbed.cli.options import pick_testbed
    from testbed.errors import UsageError
    from testbed.runner.watch import Watch
    from testbed.units import UnitError, parse_duration

    try:
        seconds = None if args.time is None else parse_duration(args.time)
    except UnitError as error:
        raise UsageError(f"--for: {error}") from error
    testbed = pick_testbed(args.name)
    with testbed.admin() as admin, Watch(testbed, admin) as watch:
        try:
            if args.web:
                _serve(watch, testbed.name, args.port, seconds)
            elif args.json:
                _print_json(watch, seconds)
            else:
                _show(watch, testbed.name, seconds)
        except KeyboardInterrupt:
            pass  # the usual end of a view
    return 0


def _print_json(watch: "Watch", seconds: float | None) -> None:
    import json
    from dataclasses import asdict

    for reading in watch.follow(seconds):
        print(json.dumps({**asdict(reading), "changes": [c.text for c in watch.latest(reading)]}), flush=True)


def _show(watch: "Watch", name: str, seconds: float | None) -> None:
    from rich.console import Console
    from rich.live import Live

    from results.render import table
    from testbed.cli.watch_view import HEADER, renderable, rows, state_lines

    console = Console()
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, screen=False) as live:
            for reading in watch.follow(seconds):
                live.update(renderable(name, reading, watch.changes), refresh=True)
        return
    for reading in watch.follow(seconds):
        changes = [f"{change.clock}  {change.text}" for change in watch.latest(reading)]
        print(table(HEADER, rows(reading)), *state_lines(reading), *changes, sep="\n", flush=True)


def _serve(watch: "Watch", name: str, port: int, seconds: float | None) -> None:
    from testbed.cli.watch_page import WatchPage

    with WatchPage(watch, name, port) as page:
        print(f"the view of {name} is at {page.url}; Ctrl-C ends it", flush=True)
        for _reading in watch.follow(seconds):
            pass


COMMAND = Command(
    "watch", "rates against quotas, progress, replicas in sync and latency of a testbed, live", _configure, _run
)
