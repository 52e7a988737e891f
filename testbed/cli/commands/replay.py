"""`testbed replay INCIDENT`."""

import argparse
from typing import TYPE_CHECKING

from testbed.cli.command import Command

if TYPE_CHECKING:
    from testbed.incidents.replay import Replayed


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("incident", help="an incident's file, or the name of a ready one")
    parser.add_argument(
        "--practice", choices=("faulty", "remedy"), help="what went wrong (default), or what would have been right"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the records' contents; entries act by the clock alone")
    parser.add_argument(
        "--vary",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="another value of a parameter; repeatable",
    )
    parser.add_argument("--on", metavar="NAME", help="a testbed that is up with the incident's topology; left up")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen when; needs no engine")
    parser.epilog = "exit codes: 0 every expectation is met, 1 one is not, 2 it could not be judged"


def _varied(words: list[str]) -> dict[str, str]:
    from testbed.errors import UsageError

    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"--vary {word}: expected NAME=VALUE, such as throttle=5MB/s")
        found[name] = value
    return found


def _run(args: argparse.Namespace) -> int:
    from testbed.errors import UsageError
    from testbed.incidents.read import find

    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: allowed: 0 or more")
    if args.dry_run and args.json:
        raise UsageError("--dry-run prints text; leave --json out")
    file = find(args.incident, _varied(args.vary))
    if args.dry_run:
        from testbed.incidents.describe import describe, describe_file

        print(describe(file.practice(args.practice), args.seed) if args.practice else describe_file(file, args.seed))
        return 0
    from testbed.cli.show import TimedProgress
    from testbed.cli.verdicts import EXIT
    from testbed.incidents.replay import Request, replay

    request = Request(file.practice(args.practice or "faulty"), args.seed, args.on, args.store)
    replayed = replay(request, TimedProgress())
    print(_as_json(replayed) if args.json else _as_text(replayed))
    return EXIT[replayed.verdict]


def _as_text(replayed: "Replayed") -> str:
    from testbed.cli.verdicts import criterion_lines

    foretold = "as the file foretells" if replayed.unlike is None else f"not as the file foretells: {replayed.unlike}"
    return "\n".join(
        [
            *criterion_lines(replayed.criteria),
            "",
            f"{replayed.verdict.upper()}  {replayed.experiment}  {replayed.practice}  {replayed.run_id}",
            foretold,
            f"report {replayed.report}",
        ]
    )


def _as_json(replayed: "Replayed") -> str:
    from dataclasses import asdict

    from testbed.cli.show import document

    return document(asdict(replayed) | {"report": str(replayed.report)})


COMMAND = Command("replay", "replay an incident and judge what was expected", _configure, _run)
