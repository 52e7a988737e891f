"""The selection of runs in a store: its command-line options, and the test of a run against them."""

import argparse
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from results.contract.verdict import VERDICTS
from testbed.errors import UsageError
from testbed.units import UnitError, parse_duration

if TYPE_CHECKING:
    from results.contract.manifest import Manifest

DAY_S = 86_400.0
MOST_DAYS = 36_500
"""A longer age may lie outside the calendar."""


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add `--experiment`, `--version`, `--verdict` and `--since`; a run has to match all given options."""
    parser.add_argument(
        "--experiment", metavar="NAME", action="append", help="only runs of this experiment; repeatable"
    )
    parser.add_argument(
        "--version", metavar="VERSION", help="only runs with a broker of this version, such as 4.3 or 4.3.1"
    )
    parser.add_argument("--verdict", choices=VERDICTS, action="append", help="only runs with this verdict; repeatable")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="only runs that started since, such as 2026-11-01, 2026-11-01T18:00Z, 36h or 14d",
    )


def chosen_by(args: argparse.Namespace) -> "Callable[[Manifest], bool] | None":
    """Return the test of a run against the options; None without an option. Raise `UsageError` for a wrong one."""
    if (args.experiment, args.version, args.verdict, args.since) == (None, None, None, None):
        return None
    since = None if args.since is None else parse_since(args.since, datetime.now(UTC))
    versions = (f"{args.version}.", f"{args.version}-")  # 4.3 is also 4.3.1 and 4.3-SNAPSHOT, and is not 4.30

    def fits(run: "Manifest") -> bool:
        return (
            (args.experiment is None or run.experiment in args.experiment)
            and (args.version is None or any(f"{v}.".startswith(versions) for v in run.versions.kafka.values()))
            and (args.verdict is None or run.verdict in args.verdict)
            and (since is None or datetime.fromisoformat(run.started) >= since)
        )

    return fits


def parse_age(option: str, text: str) -> timedelta:
    """Return the age in a text such as `36h` or `14d`. Raise `UsageError`, with the option's name, when it is none."""
    days = re.fullmatch(r"(\d+(?:\.\d+)?)d", text)
    try:
        age_s = float(days[1]) * DAY_S if days else parse_duration(text)
    except UnitError as error:
        raise UsageError(f"{option} {text}: {error}; or days, as 14d") from error
    if age_s > MOST_DAYS * DAY_S:
        raise UsageError(f"{option} {text}: expected at most {MOST_DAYS}d")
    return timedelta(seconds=age_s)


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time of a date, a time (UTC by default) or an age before `now`. Raise `UsageError` for other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return now - parse_age("--since", text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
