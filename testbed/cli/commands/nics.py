"""Measure every NIC and every shaped uplink of a testbed, 2 s in each direction."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from results.render import document, table
from testbed.units import format_bit_rate, format_byte_rate

if TYPE_CHECKING:
    from testbed.network.measure import LinkRate


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="a testbed that is up")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = "Exit codes: 0 every rate is as declared, 2 one is not."


def run(args: argparse.Namespace) -> int:
    from testbed.provision.state import lock
    from testbed.provision.testbed import Testbed

    testbed = Testbed.attach(args.name)
    with lock(args.name, for_run=True):  # the measurement fills the NICs, and a run would blame Kafka
        rates = [*testbed.nics(), *testbed.uplinks()]
    if args.json:
        print(document([{**asdict(rate), "as_declared": rate.as_declared} for rate in rates]))
    else:
        rows = [
            (
                rate.place,
                rate.device,
                rate.direction,
                format_bit_rate(rate.declared_bps),
                format_byte_rate(round(rate.payload_bytes_per_s)),
                f"{rate.ratio:.3f}",
                _judged(rate),
            )
            for rate in rates
        ]
        print(table(("PLACE", "LINK", "DIRECTION", "DECLARED", "PAYLOAD", "RATIO", ""), rows))
    return 0 if all(rate.as_declared for rate in rates) else 2


def _judged(rate: "LinkRate") -> str:
    if not rate.as_declared:
        return "OFF"
    if rate.reach_bps < rate.declared_bps:
        return f"not filled: the rack's NICs carry {format_bit_rate(rate.reach_bps)} together"
    return "as declared"
