"""Options of several commands, their values, and `[NAME] HOST`: one testbed alone needs no NAME."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from testbed.errors import UsageError

if TYPE_CHECKING:
    from testbed.kafka.admin import Admin
    from testbed.kafka.command_config import CommandConfig
    from testbed.provision.testbed import Testbed

T = TypeVar("T")


def add_repeatable(parser: argparse.ArgumentParser, option: str, metavar: str, help_text: str) -> None:
    """Add an option that a user may give several times; its value is a list of texts, empty by default."""
    parser.add_argument(option, metavar=metavar, action="append", default=[], help=help_text)


def add_earlier(
    parser: "argparse.ArgumentParser | argparse._MutuallyExclusiveGroup",
    option: str,
    dest: str,
    parse: Callable[[str], object] = str,
    action: str = "store",
) -> None:
    """Accept an option's earlier name, which no help shows any more; `dest` and `action` are those of the option."""
    parser.add_argument(option, dest=dest, type=parse, action=action, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def add_kafka(parser: argparse.ArgumentParser, default: str) -> None:
    """Add `--kafka`; `default` says of what the Kafka is without it."""
    help_text = f"a release, a tarball or a build's path (default: {default})"
    parser.add_argument("--kafka", metavar="VERSION", help=help_text)


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that has Spark judge a store's series."""
    parser.add_argument(
        "--include-noisy",
        action="store_true",
        help="also count runs that only other work on the machine made inconclusive",
    )
    parser.add_argument("--master", default="local[*]", metavar="URL", help="Spark's master (default: local[*])")
    parser.add_argument("--memory", default="2g", metavar="SIZE", help="heap of Spark's JVM (default: 2g)")


def add_defects(parser: argparse.ArgumentParser) -> None:
    """Add `--defect`, which may be repeated; `args.defect` is a list of texts."""
    add_repeatable(
        parser,
        "--defect",
        "NAME[@HOST,…][:key=value,…]",
        "break the brokers on purpose; `testbed defects` lists the defects; repeatable",
    )


def add_formats(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and `--markdown`, of which a user may give one."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument(
        "--markdown", action="store_true", help="print Markdown tables, such as for a pull request's comment"
    )


def add_campaign(parser: argparse.ArgumentParser, what: str, budget: str) -> None:
    """Add the options of a campaign of runs, all None by default. `what` names the campaign, `budget` is an example."""
    parser.add_argument("--profile", metavar="PROFILE", help="smoke, ci or release (default: ci)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the order of the runs (default: 1)")
    parser.add_argument(
        "--budget", metavar="TIME", help=f"begin no run that would end after this time, such as {budget}"
    )
    parser.add_argument("--resume", metavar="ID", help=f"continue an interrupted {what}; repeats no run")
    parser.add_argument("--store", metavar="URI", help="the result store (default: under the XDG data folder)")


def add_comparison(parser: argparse.ArgumentParser, what: str = "campaign", budget: str = "30m") -> None:
    """Add the options of a campaign that compares. The options that choose the runs are None or empty by default."""
    add_campaign(parser, what, budget)
    add_repeatable(parser, "--measure", "NAME", "compare only this measure; repeatable")
    parser.add_argument(
        "--threshold", type=float, metavar="PERCENT", help="the smallest change that counts (default: 3)"
    )
    parser.add_argument("--all", action="store_true", help="make every run, even when fewer decide")
    add_formats(parser)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that connects to a running cluster."""
    parser.add_argument("--bootstrap", metavar="HOST:PORT,…", required=True, help="brokers of the cluster")
    add_command_config(parser)


def add_command_config(parser: argparse.ArgumentParser) -> None:
    """Add the connection options, for a command that knows the cluster's address."""
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        type=Path,
        help="properties of a Java client for TLS and SASL (docs/operating.md)",
    )


def security_of(args: argparse.Namespace) -> "CommandConfig | None":
    """Return the settings of `--command-config`, or None without it. Raise `CommandConfigError` when they are wrong."""
    from testbed.kafka.command_config import CommandConfig

    return None if args.command_config is None else CommandConfig.load(args.command_config)


def admin_of(args: argparse.Namespace) -> "Admin":
    """Return a client. Raise `CommandConfigError` for wrong settings, `KafkaError` when it cannot connect."""
    from testbed.kafka.admin import Admin

    return Admin(args.bootstrap, security=security_of(args))


def parsed(option: str, text: str, parse: Callable[[str], T]) -> T:
    """Return the value of an option. Raise `UsageError`, which names the option, when `parse` raises ValueError."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def pick_testbed(name: str | None) -> "Testbed":
    """Return the testbed of that name, or without a name the only one that is up. Raise `UsageError` otherwise."""
    from testbed.provision.state import names
    from testbed.provision.testbed import Testbed

    up = names()
    if name is None and not up:
        raise UsageError("no testbed is up; `testbed up three-brokers` brings one up")
    if name is None and len(up) != 1:
        raise UsageError(f"several testbeds are up: {', '.join(up)}; name one")
    return Testbed.attach(up[0] if name is None else name)


def pick(words: Sequence[str]) -> tuple["Testbed", str]:
    """Return the testbed and the host's name in `[NAME] HOST`. Raise `UsageError`, with the names that exist."""
    if not 1 <= len(words) <= 2:
        raise UsageError(f"expected [NAME] HOST, found {' '.join(words)!r}")
    *name, host = words
    testbed = pick_testbed(name[0] if name else None)
    if host not in testbed.hosts:
        raise UsageError(f"{testbed.name} has no host {host!r}; it has {', '.join(testbed.hosts)}")
    return testbed, host
