"""What tc_lines sets is what the kernel has: every rate, in a network namespace of its own. Needs root, no
engine."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed.network.shape import (
    Shape,
    class_show_command,
    compare,
    offload_command,
    parse_shape,
    qdisc_show_command,
    tc_lines,
)
from testbed.topology import default_burst_bytes

pytestmark = [
    pytest.mark.containers,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("tc"), reason="needs Linux and iproute2"),
]

RATES_BPS = [
    8_000,
    8_001,
    64_000,
    999_999,
    1_234_567,
    10_500_000,
    100_000_000,
    123_456_789,
    400_000_000,
    1_000_000_000,
    2_500_000_001,
    9_999_999_999,
    10_000_000_000,
    34_359_738_360,  # the last rate that fits in 32 bits of bytes/s
    34_359_738_368,  # the first that needs rate64
    40_000_000_000,
    99_999_999_999,
    100_000_000_000,
]


@dataclass
class Namespace:
    """A network namespace with one veth pair, v0 and v1, that ends with the process that holds it."""

    pid: int

    def run(self, *command: str, lines: tuple[str, ...] = ()) -> str:
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *command],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
        return done.stdout

    def shape(self, rate_bps: int, burst_bytes: int) -> Shape:
        self.run("tc", "-batch", "-", lines=tc_lines("v0", Shape(rate_bps, burst_bytes)))
        actual = self.read()
        assert actual is not None
        return actual

    def read(self) -> Shape | None:
        qdiscs = json.loads(self.run(*qdisc_show_command("v0")) or "[]")
        return parse_shape(qdiscs, self.run(*class_show_command("v0")))


@pytest.fixture(scope="module")
def namespace() -> Iterator[Namespace]:
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None and holder.stdout is not None and holder.stderr is not None
    try:
        if holder.stdout.readline() != "ready\n":
            pytest.skip(f"no network namespace to be had: {holder.stderr.read().strip()}")
        made = Namespace(holder.pid)
        made.run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        made.run("ip", "link", "set", "dev", "v0", "up")
        yield made
    finally:
        holder.stdin.close()
        holder.wait(timeout=10)


@pytest.mark.parametrize("rate_bps", RATES_BPS)
def test_the_kernel_has_what_was_declared(namespace: Namespace, rate_bps: int) -> None:
    for burst_bytes in (default_burst_bytes(rate_bps), 16_384, 50_001, 123_457, 1_048_577):
        if burst_bytes * 8 / rate_bps > 200:
            continue  # the kernel's 32 bits of ticks end at 274 s; topologies end long before
        expected = Shape(rate_bps, burst_bytes)
        assert compare(expected, namespace.shape(rate_bps, burst_bytes)) == []


@pytest.mark.parametrize("rate_bps", RATES_BPS)
def test_another_rate_or_burst_is_seen(namespace: Namespace, rate_bps: int) -> None:
    burst_bytes = default_burst_bytes(rate_bps)
    actual = namespace.shape(rate_bps, burst_bytes)
    for other_bps in (rate_bps * 101 // 100, rate_bps * 99 // 100, rate_bps % 2**35 or 8_000, rate_bps * 2):
        if abs(other_bps - rate_bps) >= max(8, rate_bps // 1000):
            assert "rate is" in compare(Shape(other_bps, burst_bytes), actual)[0]
    for other_bytes in (burst_bytes * 2, burst_bytes * 11 // 10):
        assert any("burst is" in text for text in compare(Shape(rate_bps, other_bytes), actual))


def test_the_lines_can_be_run_again_and_replace_whatever_was_there(namespace: Namespace) -> None:
    for rate_bps in (400_000_000, 400_000_000, 100_000_000):
        assert compare(Shape(rate_bps, 51_200), namespace.shape(rate_bps, 51_200)) == []
    namespace.run("tc", "qdisc", "replace", "dev", "v0", "root", "tbf", "rate", "1mbit", "burst", "10k", "limit", "1m")
    assert namespace.read() is None
    assert compare(Shape(400_000_000, 51_200), namespace.read()) == ["not shaped; declared is 400mbit"]
    assert compare(Shape(400_000_000, 51_200), namespace.shape(400_000_000, 51_200)) == []


def test_what_somebody_changed_is_told(namespace: Namespace) -> None:
    expected = Shape(400_000_000, 51_200)
    namespace.shape(400_000_000, 51_200)
    class_line = (
        "class change dev v0 parent 1: classid 1:10 htb rate 300mbit ceil 800mbit "
        "burst 51200b cburst 51200b quantum 1514"
    )
    queue_line = "qdisc replace dev v0 parent 1:10 handle 10: bfifo limit 5000"
    namespace.run("tc", "-batch", "-", lines=(class_line, queue_line))
    told = compare(expected, namespace.read())
    assert told[:2] == ["rate is 300mbit; declared is 400mbit", "ceil is 800mbit; declared is 400mbit"]
    assert told[-1] == "queue is 5kB; declared is 1.5MB"

    namespace.shape(400_000_000, 51_200)
    namespace.run("tc", "-batch", "-", lines=("class add dev v0 parent 1: classid 1:20 htb rate 1gbit",))
    assert compare(expected, namespace.read()) == ["class htb 1:20 is not the testbed's"]

    lines = [line.replace("default 10", "default 99") for line in tc_lines("v0", expected)]
    namespace.run("tc", "-batch", "-", lines=tuple(lines))
    (told_default,) = compare(expected, namespace.read())
    assert told_default.startswith("HTB's default class 0x99")


def test_offload_is_off_afterwards(namespace: Namespace) -> None:
    if not shutil.which("ethtool"):
        pytest.skip("ethtool is not installed")
    namespace.run(*offload_command("v0"))
    shown = namespace.run("ethtool", "-k", "v0")
    for feature in ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload"):
        assert f"{feature}: off" in shown
