"""`--bootstrap` and `--command-config`: what every command has that asks a cluster which the testbed did not make."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.kafka.admin import Admin
    from testbed.kafka.command_config import CommandConfig


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """The options of a command that asks a running cluster."""
    parser.add_argument("--bootstrap", metavar="HOST:PORT,…", required=True, help="the cluster")
    add_command_config(parser)


def add_command_config(parser: argparse.ArgumentParser) -> None:
    """How to connect, for commands that know where to."""
    parser.add_argument(
        "--command-config", metavar="FILE", type=Path, help="properties of a Java client: TLS, SASL (docs/operating.md)"
    )


def security_of(args: argparse.Namespace) -> "CommandConfig | None":
    """What `--command-config` says; None without it. Raises `CommandConfigError`."""
    from testbed.kafka.command_config import CommandConfig

    return None if args.command_config is None else CommandConfig.load(args.command_config)


def admin_of(args: argparse.Namespace) -> "Admin":
    """Connect. Raises `CommandConfigError`, `KafkaError`."""
    from testbed.kafka.admin import Admin

    return Admin(args.bootstrap, security=security_of(args))
