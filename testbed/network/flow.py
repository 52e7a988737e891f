"""One flow of iperf3 between two ends: a host's NIC, or a switch."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from results.contract.network import FRAME_BYTES
from testbed.errors import TestbedError
from testbed.hosts import CommandFailed, CommandResult, Shell
from testbed.network.shape import FULL_MTU
from testbed.network.transfers import BEFORE_S, DATAGRAM_BYTES, DATAGRAM_FRAME_BYTES
from testbed.wait import wait_for

PORT = 5201


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """The address of one end of a flow. Bound to the device: no route reaches some addresses."""

    shell: Shell
    address: str
    device: str


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """The duration of a flow in `seconds` (rounded up), after `BEFORE_S` that iperf3 omits; TCP, or datagrams.

    Datagrams are sent at `offered_bps`. TCP in several `streams` sends at most `limit_bps` (0: no limit). `mtu` is that
    of both ends.
    """

    seconds: float
    offered_bps: int = 0
    mtu: int = FULL_MTU
    streams: int = 1
    limit_bps: float = 0


@contextmanager
def receiver(target: FlowEnd, port: int) -> Iterator[None]:
    """Run the receiver of one flow at `target` within the block; cut off a flow that continues at its end."""
    pid_file = f"/run/iperf3-{port}.pid"
    server = ["iperf3", "-s", "-1", "-D", "-B", target.address, "--bind-dev", target.device]
    gone = f"[ -s {pid_file} ] && kill $(tr -d '\\0' < {pid_file}) 2>/dev/null; rm -f {pid_file}"
    target.shell.run(gone, check=False)  # a command that was killed before its flow came has left it waiting
    target.shell.run([*server, "-p", str(port), "-I", pid_file])
    try:
        yield
    finally:
        # `-1` ends it after one flow; this ends it when a flow never came, or continues.
        target.shell.run(gone, check=False)


def send(source: FlowEnd, target: FlowEnd, port: int, flow: FlowSettings) -> CommandResult:
    """Run a flow to the receiver at `target`. Return iperf3's result: its JSON output also reports a failure."""
    client = ["iperf3", "-c", target.address, "-B", source.address, "--bind-dev", source.device, "-p", str(port)]
    client += ["-t", str(math.ceil(flow.seconds)), "-O", str(BEFORE_S), "-J", "--connect-timeout", "2000"]
    if flow.offered_bps:
        client += ["-u", "-l", str(DATAGRAM_BYTES - FULL_MTU + flow.mtu), "-b", str(flow.offered_bps)]
    if flow.streams > 1:
        client += ["-P", str(flow.streams)]
    if flow.limit_bps:
        client += ["-b", str(round(flow.limit_bps / flow.streams))]
    # The receiver does not signal that it listens: a refused connection is tried again.
    return wait_for(
        lambda: source.shell.run(client, timeout_s=BEFORE_S + flow.seconds + 30, check=False),
        lambda result: "refused" not in result.stdout,  # iperf3 may end with 0 all the same
        timeout_s=5.0,
        interval_s=0.05,
        what=f"the receiver on {target.shell.name} to listen at {target.address}:{port}",
    )


def payload_rate(source: FlowEnd, target: FlowEnd, flow: FlowSettings, port: int = PORT) -> float:
    """Return the payload bytes/s from `source` to `target` by the receiver's count, converted to TCP's payload."""
    with receiver(target, port):
        result = send(source, target, port, flow)
    if result.exit_status != 0:
        raise CommandFailed(source.shell.name, result)
    try:
        received = received_bytes_per_s(result.stdout)
    except ValueError as error:
        raise TestbedError(f"the flow from {source.shell.name} to {target.shell.name} has no rate: {error}") from error
    smaller = FULL_MTU - flow.mtu
    return received * ((DATAGRAM_FRAME_BYTES - smaller) / (FRAME_BYTES - smaller) if flow.offered_bps else 1)


def received_bytes_per_s(report: str) -> float:
    """Return the payload bytes/s that the receiver of a flow counted, of iperf3's JSON. Pure.

    Raise `ValueError` for a report without that count: on a busy machine iperf3 may end before the receiver reported.
    """
    try:
        parsed = json.loads(report)
    except ValueError as error:
        raise ValueError(f"iperf3's report is no JSON ({error}): {report.strip()[-200:]!r}") from error
    try:
        return float(parsed["end"]["sum_received"]["bits_per_second"]) / 8
    except (KeyError, TypeError) as error:
        said = parsed.get("error") if isinstance(parsed, dict) else None
        why = f"iperf3 said: {said}" if said else "the machine may be too busy"
        raise ValueError(f"iperf3's report has no count of the receiver (end.sum_received); {why}") from error
