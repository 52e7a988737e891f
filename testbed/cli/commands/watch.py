"""Show rates against quotas, progress, in-sync replicas and latency of a testbed, live."""

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from results.render import table
from testbed.cli.options import parsed, pick_testbed
from testbed.units import parse_duration

if TYPE_CHECKING:
    from testbed.runner.watch import Watch


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="a testbed that is up; it may be left out when there is one")
    parser.add_argument("--for", dest="time", metavar="TIME", help="end after this time, such as 30s")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document a second, each in one line")
    form.add_argument("--web", action="store_true", help="serve a page for a browser on this machine")
    parser.add_argument(
        "--port", metavar="N", type=int, default=0, help="with --web: the page's port (default: a free one)"
    )
    parser.epilog = "The view changes nothing. Without a terminal it prints the table once a second. Ctrl-C ends it."


def run(args: argparse.Namespace) -> int:
    from testbed.runner.watch import Watch

    seconds = None if args.time is None else parsed("--for", args.time, parse_duration)
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
    for reading in watch.follow(seconds):
        print(json.dumps({**asdict(reading), "changes": [c.text for c in watch.latest(reading)]}), flush=True)


def _show(watch: "Watch", name: str, seconds: float | None) -> None:
    from rich.console import Console
    from rich.live import Live

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
    from testbed.cli.watch_page import watch_page

    with watch_page(watch, name, port) as url:
        print(f"the view of {name} is at {url}; Ctrl-C ends it", flush=True)
        for _reading in watch.follow(seconds):
            pass
