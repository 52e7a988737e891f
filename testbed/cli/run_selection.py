"""The selection of runs in a store: the options on a command line, and the runs that fit them."""

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from testbed.errors import UsageError
from testbed.units import UnitError, parse_duration

if TYPE_CHECKING:
    from results.contract.manifest import Manifest

VERDICTS = ("pass", "fail", "inconclusive")


def add_choice(parser: argparse.ArgumentParser) -> None:
    """`--experiment`, `--version`, `--verdict`, `--since`: a run has to fit all that are given."""
    parser.add_argument("--experiment", metavar="NAME", action="append", help="of this experiment (may be repeated)")
    parser.add_argument("--version", metavar="KAFKA", help="with a broker of this Kafka version, as 4.3 or 4.3.1")
    parser.add_argument("--verdict", choices=VERDICTS, action="append", help="with this verdict (may be repeated)")
    parser.add_argument(
        "--since", metavar="WHEN", help="started since then, as 2026-11-01, 2026-11-01T18:00Z, 36h or 14d"
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What a run has to be; None is anything. `since` is UTC."""

    experiments: tuple[str, ...] | None = None
    version: str | None = None
    verdicts: tuple[str, ...] | None = None
    since: datetime | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        """What the options say. Raises `UsageError`."""
        return cls(
            tuple(args.experiment) if args.experiment else None,
            args.version,
            tuple(args.verdict) if args.verdict else None,
            None if args.since is None else parse_since(args.since, datetime.now(UTC)),
        )

    def fits(self, run: "Manifest") -> bool:
        """Whether the run is one of those meant."""
        return (
            (self.experiments is None or run.experiment in self.experiments)
            and (self.version is None or any(_is_version(v, self.version) for v in run.versions.kafka.values()))
            and (self.verdicts is None or run.verdict in self.verdicts)
            and (self.since is None or datetime.fromisoformat(run.started) >= self.since)
        )


def parse_age(option: str, text: str) -> timedelta:
    """An age, as `36h` or `14d`. Raises `UsageError` that names the option."""
    if days := re.fullmatch(r"(\d+(?:\.\d+)?)d", text):
        return timedelta(days=float(days[1]))
    try:
        return timedelta(seconds=parse_duration(text))
    except UnitError as error:
        raise UsageError(f"{option} {text}: {error}; or days, as 14d") from error


def parse_since(text: str, now: datetime) -> datetime:
    """A date, a time (UTC unless it says otherwise), or an age before `now`. Raises `UsageError`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return now - parse_age("--since", text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_version(version: str, wanted: str) -> bool:
    return version == wanted or version.startswith((f"{wanted}.", f"{wanted}-"))
