"""The options `--bootstrap` and `--command-config` of every command that connects to a cluster outside the testbed."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.kafka.admin import Admin
    from testbed.kafka.command_config import CommandConfig


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
