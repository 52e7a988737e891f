"""`testbed nics NAME`."""

import argparse

from testbed.cli.command import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the testbed")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def _run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from testbed.cli.show import document, table
    from testbed.provision.testbed import Testbed
    from testbed.units import format_bit_rate, format_byte_rate

    rates = Testbed.attach(args.name).measure_nics()
    if args.json:
        print(document([{**asdict(rate), "as_declared": rate.as_declared} for rate in rates]))
    else:
        rows = [
            (
                rate.host,
                rate.device,
                rate.direction,
                format_bit_rate(rate.declared_bps),
                format_byte_rate(round(rate.payload_bytes_per_s)),
                f"{rate.ratio:.3f}",
                "as declared" if rate.as_declared else "OFF",
            )
            for rate in rates
        ]
        print(table(("HOST", "NIC", "DIRECTION", "DECLARED", "PAYLOAD", "RATIO", ""), rows))
    return 0 if all(rate.as_declared for rate in rates) else 2


COMMAND = Command("nics", "measure every NIC of a testbed, 2 s each way", _configure, _run)
