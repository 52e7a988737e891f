"""Options and names that several commands share: `--defect`, a cluster outside the testbed, and `[NAME] HOST`.

A user may omit the name of the testbed when exactly one is up.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import UsageError

if TYPE_CHECKING:
    from testbed.hosts import SshHost
    from testbed.kafka.admin import Admin
    from testbed.kafka.command_config import CommandConfig
    from testbed.provision.testbed import Testbed


def add_defects(parser: argparse.ArgumentParser) -> None:
    """Add `--defect`, which may be repeated; `args.defect` is a list of texts."""
    parser.add_argument(
        "--defect",
        metavar="NAME[@HOST,…][:key=value,…]",
        action="append",
        default=[],
        help="break the brokers on purpose (may be repeated; `testbed defects` lists them)",
    )


def add_formats(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and `--markdown`, of which a user may give one."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one JSON document on standard output")
    output.add_argument("--markdown", action="store_true", help="Markdown tables, as for a pull request's comment")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that connects to a running cluster."""
    parser.add_argument("--bootstrap", metavar="HOST:PORT,…", required=True, help="the cluster")
    add_command_config(parser)


def add_command_config(parser: argparse.ArgumentParser) -> None:
    """Add the connection options, for a command that knows the cluster's address."""
    parser.add_argument(
        "--command-config", metavar="FILE", type=Path, help="properties of a Java client: TLS, SASL (docs/operating.md)"
    )


def security_of(args: argparse.Namespace) -> "CommandConfig | None":
    """Return the settings of `--command-config`, or None without it. Raise `CommandConfigError` when they are wrong."""
    from testbed.kafka.command_config import CommandConfig

    return None if args.command_config is None else CommandConfig.load(args.command_config)


def admin_of(args: argparse.Namespace) -> "Admin":
    """Return a connected client.

    Raise `CommandConfigError` for wrong settings, and `KafkaError` when it cannot connect.
    """
    from testbed.kafka.admin import Admin

    return Admin(args.bootstrap, security=security_of(args))


def pick_host(words: Sequence[str]) -> "SshHost":
    """Return the host that `words` name. Raise `UsageError`, with the existing names, when there is none."""
    testbed, host = pick(words)
    return testbed.hosts[host]


def pick_testbed(name: str | None) -> "Testbed":
    """Return the testbed of that name, or without a name the only one that is up. Raise `UsageError` otherwise."""
    from testbed.provision.state import names
    from testbed.provision.testbed import Testbed

    up = names()
    if name is None and len(up) != 1:
        raise UsageError(f"say which testbed; up are {', '.join(up) or 'none'}")
    return Testbed.attach(up[0] if name is None else name)


def pick(words: Sequence[str]) -> tuple["Testbed", str]:
    """Return the testbed and the host's name that `words` name.

    Raise `UsageError`, with the existing names, when there is none.
    """
    from testbed.provision.state import names
    from testbed.provision.testbed import Testbed

    up = names()
    if len(words) == 1:
        if len(up) != 1:
            raise UsageError(f"say which testbed: NAME HOST; up are {', '.join(up) or 'none'}")
        name, host = up[0], words[0]
    elif len(words) == 2:
        name, host = words
    else:
        raise UsageError(f"expected [NAME] HOST, found {' '.join(words)!r}")
    testbed = Testbed.attach(name)
    if host not in testbed.hosts:
        raise UsageError(f"{name} has no host {host!r}; it has {', '.join(testbed.hosts)}")
    return testbed, host
