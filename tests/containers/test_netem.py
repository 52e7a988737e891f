"""Delay, jitter and loss as declared, on a kernel that has netem: our own lines for tc, in a guest, measured with ping.

The guest is emulated, so that it is slow and now and then late; it is never early. Times are therefore judged by what
no frame may undercut and by medians, losses by the binomial distribution.
"""

import json
import math
import re
import statistics
from dataclasses import dataclass

import pytest

from testbed.network.shape import (
    Shape,
    class_show_command,
    compare,
    leaf_limit_bytes,
    offload_command,
    parse_shape,
    qdisc_show_command,
    tc_lines,
)
from testbed.topology import Impairment
from tests.containers.guest import Guest

# Only the lines for tc can break it, which change rarely; an emulated guest needs a minute.
pytestmark = [pytest.mark.containers, pytest.mark.alone, pytest.mark.nightly]

MBIT = 1_000_000
PEER = "198.18.9.2"
NOBODY = "198.18.9.77"
"""Frames to here reach the peer's device and are counted there, but nobody answers that they are not wanted."""
MODULES = ("veth", "sch_htb", "sch_netem", "bridge")
CASES = {
    "plain": Shape(40 * MBIT, 16_384),
    "delay": Shape(20 * MBIT, 16_384, impairment=Impairment(20_000)),
    "jitter": Shape(20 * MBIT, 16_384, impairment=Impairment(30_000, 5_000)),
    "loss": Shape(40 * MBIT, 16_384, impairment=Impairment(loss_ppm=20_000)),
    "all": Shape(10 * MBIT, 16_384, impairment=Impairment(15_000, 1_000, 50_000)),
}
DAMAGED = Shape(20 * MBIT, 16_384, impairment=Impairment(40_000, 0, 0, 100_000, 100_000, 250_000))
"""Of a fault: a tenth has one wrong bit, a tenth comes twice, a quarter is not delayed."""
DAMAGED_PINGS = 1000
PINGS = {"plain": 100, "delay": 300, "jitter": 400, "loss": 1500, "all": 1000}
RATE_S = 2.0
FLOOD_BYTES = 1300
"""A queue full of these has room for ten pings more, at every rate below. Of 1400 a queue of 75 or 150 kB had room
for none: a ping then passed only when it came between a frame's leaving and the flood's next, and once none did."""
FRAMED_BYTES = 14 + 20 + 8
PING_BYTES = FRAMED_BYTES + 56
SLACK_MS = 3.0
"""By how much the emulated machine's median may be late, there and back."""


@dataclass
class Seen:
    """What the guest saw of one case."""

    shape: Shape | None
    sent: int
    times_ms: list[float]
    rate_bps: float
    loaded_ms: list[float]

    @property
    def lost(self) -> int:
        return self.sent - len(self.times_ms)


def script() -> str:
    lines = [
        "ip netns add b",
        "ip link add v0 type veth peer name v1 netns b",
        f"ip addr add {PEER[:-1]}1/24 dev v0",
        "ip link set v0 up",
        f"ip -n b addr add {PEER}/24 dev v1",
        "ip -n b link set v1 up",
        " ".join(offload_command("v0")) + " > /dev/null",
        "ip netns exec b " + " ".join(offload_command("v1")).replace("ethtool", "/sbin/ethtool", 1) + " > /dev/null",
        f"ip neigh add {NOBODY} dev v0 lladdr $(ip netns exec b cat /sys/class/net/v1/address)",
        "echo 4000000 > /proc/sys/net/core/wmem_default",
        f"ping -q -c 1 {PEER} > /dev/null",
        # Read by the shell itself, one right after the other; a veth's frame is sent when it is received.
        "sent() { read b < /sys/class/net/v0/statistics/tx_bytes; read now rest < /proc/uptime; echo $b $now; }",
    ]
    for name, shape in CASES.items():
        tc = "\n".join(tc_lines("v0", shape))
        lines += [
            f"echo '--- {name}'",
            f"tc -batch - <<'END'\n{tc}\nEND",
            " ".join(qdisc_show_command("v0")),
            "echo",
            " ".join(class_show_command("v0")),
            # Every request on its own: the next is sent before the answer to the last one, also where that is late.
            f"ping -n -i 0.003 -W 1 -c {PINGS[name]} {PEER} | grep -o 'time=[0-9.]*\\|^[0-9]* packets transmitted'",
            f"/sbin/bash -c 'exec dd if=/dev/zero bs={FLOOD_BYTES} > /dev/udp/{NOBODY}/9 2> /dev/null' & flood=$!",
            "sleep 1",
            "echo from $(sent)",
            f"sleep {RATE_S:g}",
            "echo to $(sent)",
            f"echo loaded $(ping -n -i 0.02 -c 40 {PEER} | grep -o 'time=[0-9.]*')",
            "kill $flood",
            "sleep 0.3",
        ]
    tc = "\n".join(tc_lines("v0", DAMAGED))
    lines += [
        "echo '=== damaged'",
        f"tc -batch - <<'END'\n{tc}\nEND",
        " ".join(qdisc_show_command("v0")),
        "echo",
        " ".join(class_show_command("v0")),
        f"ping -n -i 0.003 -W 1 -c {DAMAGED_PINGS} {PEER} | grep -o 'time=[0-9.]* ms.*\\|^[0-9]* packets transmitted'",
    ]
    return "\n".join(lines) + "\n"


def parsed(text: str) -> Seen:
    qdiscs = re.search(r"^\[\{.*\}\]$", text, re.MULTILINE)
    classes = "\n".join(line for line in text.splitlines() if line.startswith("class "))
    sent = re.search(r"^(\d+) packets", text, re.MULTILINE)
    begin, end = (re.search(rf"^{word} (\d+) ([\d.]+)$", text, re.MULTILINE) for word in ("from", "to"))
    assert qdiscs and sent and begin and end, text
    loaded = re.search(r"^loaded (.*)$", text, re.MULTILINE)
    return Seen(
        parse_shape(json.loads(qdiscs[0]), classes),
        int(sent[1]),
        [float(time) for time in re.findall(r"^time=([\d.]+)$", text, re.MULTILINE)],
        8 * (int(end[1]) - int(begin[1])) / (float(end[2]) - float(begin[2])),
        [float(time) for time in re.findall(r"time=([\d.]+)", loaded[1] if loaded else "")],
    )


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What the guest printed: of the declared cases, and of the fault's."""
    return Guest.fetched().run(script(), modules=MODULES, timeout_s=150).split("=== damaged\n")


@pytest.fixture(scope="module")
def seen(said) -> dict[str, Seen]:
    said = said[0]
    found = {name: parsed(text) for name, text in re.findall(r"--- (\w+)\n(.*?)(?=^--- |\Z)", said, re.DOTALL | re.M)}
    for name, case in found.items():
        times = sorted(case.times_ms)
        loaded_ms = statistics.median(case.loaded_ms or [0])
        print(
            f"{name}: min {times[0]:.2f} median {statistics.median(times):.2f} ms, lost {case.lost} of {case.sent}, "
            f"loaded {case.rate_bps / MBIT:.3f} mbit, rtt {loaded_ms:.1f} ms"
        )
    return found


def test_a_faults_shares_are_read_back_and_are_as_often_as_chance_allows(said):
    """Four standard deviations. A wrong bit in the 98 bytes of a ping loses it, but for those that no sum covers."""
    text = said[1]
    qdiscs = re.search(r"^\[\{.*\}\]$", text, re.MULTILINE)
    classes = "\n".join(line for line in text.splitlines() if line.startswith("class "))
    assert compare(DAMAGED, parse_shape(json.loads(qdiscs[0]), classes)) == []
    answers = re.findall(r"^time=([\d.]+) ms(.*)$", text, re.MULTILINE)
    first = [float(time) for time, rest in answers if "DUP" not in rest]
    twice = len(answers) - len(first)
    early = sum(time < 20 for time in first)
    print(f"{len(first)} of {DAMAGED_PINGS} answered, {twice} twice, {early} overtook")

    def near(count, total, share):
        return abs(count - total * share) <= 4 * math.sqrt(total * share * (1 - share))

    assert near(DAMAGED_PINGS - len(first), DAMAGED_PINGS, 0.1 * 0.95)
    assert near(twice, len(first), 0.1)
    assert near(early, len(first), 0.25)


@pytest.mark.parametrize("name", CASES)
def test_what_was_asked_for_is_read_back(seen, name):
    assert compare(CASES[name], seen[name].shape) == []


@pytest.mark.parametrize("name", ["plain", "loss"])
def test_another_impairment_is_noticed(seen, name):
    assert "delay is" in " ".join(compare(CASES["delay"], seen[name].shape))


@pytest.mark.parametrize("name", CASES)
def test_no_frame_is_early_and_the_median_is_as_declared(seen, name):
    impairment = CASES[name].impairment
    base = statistics.median(seen["plain"].times_ms) if name != "plain" else 0.0
    assert min(seen[name].times_ms) >= (impairment.delay_us - impairment.jitter_us) / 1000
    assert abs(statistics.median(seen[name].times_ms) - base - impairment.delay_us / 1000) <= SLACK_MS


def test_jitter_is_spread_evenly_around_the_delay(seen):
    """Evenly over twice the jitter: half of all frames are within one jitter of each other."""
    quarter, _half, three_quarters = statistics.quantiles(seen["jitter"].times_ms, n=4)
    jitter_ms = CASES["jitter"].impairment.jitter_us / 1000
    assert 0.8 <= (three_quarters - quarter) / jitter_ms <= 1.25


@pytest.mark.parametrize("name", CASES)
def test_as_many_are_lost_as_chance_allows(seen, name):
    """Four standard deviations of the binomial distribution: a correct one is outside once in 16,000 times."""
    share = CASES[name].impairment.loss_ppm / 1e6
    expected = seen[name].sent * share
    assert abs(seen[name].lost - expected) <= 4 * math.sqrt(expected * (1 - share))


@pytest.mark.parametrize("name", [name for name in CASES if name != "plain"])
def test_the_rate_is_as_declared_also_with_delay_and_loss(seen, name):
    """Frames are lost before they wait for their turn: what is offered beyond the rate fills the gaps."""
    assert 0.95 <= seen[name].rate_bps / CASES[name].rate_bps <= 1.02


@pytest.mark.parametrize("name", CASES)
def test_a_full_queue_has_room_for_ten_pings(name):
    assert leaf_limit_bytes(CASES[name].rate_bps) % (FLOOD_BYTES + FRAMED_BYTES) >= 10 * PING_BYTES


@pytest.mark.parametrize("name", ["delay", "jitter", "all"])
def test_the_queue_is_as_long_as_without_delay(seen, name):
    shape = CASES[name]
    queue_ms = leaf_limit_bytes(shape.rate_bps) * 8 / shape.rate_bps * 1000
    declared_ms = shape.impairment.delay_us / 1000 + queue_ms
    assert abs(statistics.median(seen[name].loaded_ms) - declared_ms) <= 0.2 * declared_ms
