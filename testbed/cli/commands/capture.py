"""Capture a cluster, or files of one, as an incident that replays."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from results.contract.texts import plural
from results.contract.untrusted import visible
from testbed.cli.options import add_command_config, add_earlier, add_repeatable, parsed
from testbed.cli.output import require_writable
from testbed.errors import UsageError
from testbed.units import parse_bit_rate, parse_duration, parse_size

if TYPE_CHECKING:
    from testbed.incidents.capture import CapturedCluster
    from testbed.reassignment.plan import Plan

MEASURED = "10s"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="INCIDENT", help="the incident's name: small letters, digits, -")
    parser.add_argument("--bootstrap", metavar="HOST:PORT,…", help="brokers of the cluster; or give --from")
    parser.add_argument(
        "--from",
        dest="files",
        action="append",
        default=[],
        metavar="PATH",
        type=Path,
        help="outputs of Kafka's tools and logs instead of --bootstrap: a file or a folder; repeatable",
    )
    add_command_config(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="a new folder for both files (default: INCIDENT)")
    add_repeatable(parser, "--topic", "TOPIC", "only this topic (default: all that move); repeatable")
    parser.add_argument(
        "--plan", metavar="FILE", type=Path, help="a plan, as for kafka-reassign-partitions, instead of what runs"
    )
    parser.add_argument("--measure-for", metavar="TIME", help=f"how long to measure rates (default: {MEASURED})")
    add_earlier(parser, "--measure", "measure_for")
    parser.add_argument("--nic", metavar="RATE", default="400mbit", help="rate of each host's NIC (default: 400mbit)")
    parser.add_argument("--scale-down", metavar="N,SIZE", help="most brokers and bytes, such as 3,1GB")
    parser.add_argument(
        "--rates",
        metavar="FACTOR",
        type=float,
        default=1.0,
        help="with --scale-down: the factor of all rates, also of --nic (default: 1)",
    )
    parser.add_argument(
        "--kafka",
        metavar="VERSION",
        help="the release that the replay runs (default: that of the cluster, where it is known)",
    )
    parser.add_argument(
        "--anonymise", action="store_true", help="replace the names of topics and racks, each always by the same one"
    )
    parser.epilog = (
        "The command only reads from the cluster. `testbed replay DIR/incident.yaml` plays the capture.\n"
        "Example: `testbed capture our-incident --bootstrap kafka:9092 --plan plan.json --scale-down 3,1GB`.\n"
        "Exit code: 0 the files are written."
    )


def run(args: argparse.Namespace) -> int:
    from testbed.incidents.capture import anonymised, anonymising_key, usable_names
    from testbed.incidents.captured_file import INCIDENT, check_hosts, write_capture
    from testbed.incidents.captured_release import replayed_release
    from testbed.incidents.forms import NAME
    from testbed.incidents.scale_down import scale_down
    from testbed.reassignment.plan_file import load_plan
    from testbed.software.kafka import DEFAULT_KAFKA
    from testbed.software.release import known_digests

    if not re.fullmatch(NAME.strip("^$"), args.name):
        raise UsageError(f"{args.name!r} is not a name; allowed: small letters, digits and single hyphens")
    _check_source(args)
    folder = args.out or Path(args.name)
    if folder.exists():
        raise UsageError(f"{folder} exists: give another folder with --out")
    require_writable(folder / INCIDENT)
    measure_s = parsed("--measure-for", args.measure_for or MEASURED, parse_duration)
    nic_bps = parsed("--nic", args.nic, parse_bit_rate)
    if not measure_s:
        raise UsageError("--measure-for 0s: expected more than 0s, such as 10s")
    if args.rates != 1 and not args.scale_down:
        raise UsageError("--rates is for a smaller cluster; give --scale-down, too")
    smaller = None if args.scale_down is None else parsed("--scale-down", args.scale_down, _brokers_and_bytes)
    check_hosts(nic_bps, args.kafka or DEFAULT_KAFKA)
    plan = None if args.plan is None else load_plan(args.plan)
    found, remarks = _captured(args, plan, measure_s)
    if smaller is not None:
        try:
            found = scale_down(found, *smaller, args.rates)
        except ValueError as error:
            raise UsageError(f"--scale-down {args.scale_down}: {error}") from error
        nic_bps = round(nic_bps * args.rates)
    version, note = (args.kafka, None) if args.kafka else replayed_release(found.releases, known_digests())
    if note is not None:
        found = replace(found, notes=(*found.notes, note))
    found = (anonymised if args.anonymise else usable_names)(found, anonymising_key())
    lost = write_capture(folder, args.name, found, nic_bps, datetime.now(UTC), version)
    print(f"{plural(len(found.topics), 'topic')} on {plural(len(found.brokers), 'broker')}: {folder / INCIDENT}")
    for each in lost:
        print(f"not as captured: {each}")
    for each in remarks:
        print(visible(f"remark: {each}"))
    print(f"`testbed replay {folder / INCIDENT}` plays it")
    return 0


def _check_source(args: argparse.Namespace) -> None:
    """Raise `UsageError` unless exactly one of a cluster and files is given, with the options of that one."""

    if bool(args.bootstrap) == bool(args.files):
        raise UsageError(
            "give either --bootstrap, for a cluster that this machine reaches, or --from, for files of one that it "
            "does not reach"
        )
    for option, value in (("--measure-for", args.measure_for), ("--command-config", args.command_config)):
        if args.files and value is not None:
            raise UsageError(f"{option} is for a cluster that answers; with --from, leave it out")


def _captured(
    args: argparse.Namespace, plan: "Plan | None", measure_s: float
) -> "tuple[CapturedCluster, Sequence[str]]":
    """Return the capture of the cluster or of the files, and remarks on the files."""
    if args.files:
        from testbed.incidents.cluster_evidence import gathered
        from testbed.incidents.evidence_text import read_texts
        from testbed.incidents.file_capture import captured_files

        made = captured_files(gathered(read_texts(args.files)), plan=plan, topics=args.topic)
        return made.cluster, made.remarks
    from testbed.cli.options import admin_of
    from testbed.incidents.capture import capture

    with admin_of(args) as admin:
        return capture(admin, plan=plan, measure_s=measure_s, topics=args.topic), ()


def _brokers_and_bytes(text: str) -> tuple[int, int]:
    """Return the two numbers of `3,1GB` or `3 brokers, 1 GB`. Raise ValueError."""

    found = re.fullmatch(r"\s*(\d{1,9})(?:\s*brokers?)?\s*,(.*)", text, re.ASCII)
    if found is None:
        raise ValueError(f"{text} is not a number of brokers and a size; allowed: both with a comma, such as 3,1GB")
    return int(found[1]), parse_size(found[2].strip())
