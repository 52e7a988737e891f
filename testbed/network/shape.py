"""Shaping of one device: the commands for `tc`, the parser of its output, and the comparison. Pure.

A device has an HTB class with a byte queue; netem adds delay, jitter and loss."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from results.contract.network import FRAME_BYTES, FRAME_PAYLOAD_BYTES
from testbed.errors import TestbedError
from testbed.topology.links import UNIMPAIRED, Impairment, Side
from testbed.units import format_bit_rate, format_duration, format_share, format_size

QUANTUM_BYTES = FRAME_BYTES
"""Bytes that HTB gives a class at its turn: one full Ethernet frame. One class needs no turns, but the default is
rate / 10, for which the kernel logs a warning at high rates."""
LEAF_S = Fraction(30, 1000)
LEAF_FLOOR_BYTES = 64 * 1024
FULL_MTU = 1500
_SUPER_PACKET_BYTES = 64 * 1024
"""The most bytes that TCP gives a device at once; the device cuts them into frames behind the queue."""


class ShapeError(TestbedError):
    """`tc` printed something that this project cannot parse."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Shaping of one direction of one NIC. Omitted fields follow from rate and burst as `tc_lines` sets them.

    `delayed_packets` is the number of frames that netem holds; 0 without netem.
    `burst_bytes` is the size of HTB's bucket; `testbed.topology.links.default_burst_bytes` has the default.
    `foreign` names other disciplines on the device; it is empty on a NIC that only `tc_lines` changed.
    """

    rate_bps: int
    burst_bytes: int
    ceil_bps: int = -1
    cburst_bytes: int = -1
    leaf_bytes: int = -1
    quantum_bytes: int = QUANTUM_BYTES
    foreign: tuple[str, ...] = ()
    impairment: Impairment = UNIMPAIRED
    delayed_packets: int = -1

    @classmethod
    def of(cls, side: Side) -> "Shape":
        """Return the shaping that one direction of a declared link asks for."""
        return cls(side.rate_bps, side.burst_bytes, impairment=side.impairment)

    def __post_init__(self) -> None:
        if self.ceil_bps < 0:
            object.__setattr__(self, "ceil_bps", self.rate_bps)
        if self.cburst_bytes < 0:
            object.__setattr__(self, "cburst_bytes", self.burst_bytes)
        if self.leaf_bytes < 0:
            object.__setattr__(self, "leaf_bytes", leaf_limit_bytes(self.rate_bps))
        if self.delayed_packets < 0:
            limit = netem_limit_packets(self.impairment, self.rate_bps, self.leaf_bytes) if self.impairment else 0
            object.__setattr__(self, "delayed_packets", limit)


def leaf_limit_bytes(rate_bps: int) -> int:
    """Return the bytes of the queue under the class: 30 ms of the rate, at least 64 KiB."""
    return max(LEAF_FLOOR_BYTES, int(rate_bps * LEAF_S / 8))


def payload_bytes_per_s(rate_bps: float, mtu: int = FULL_MTU) -> float:
    """Return the TCP payload in bytes/s that passes: 1448 of the 1514 bytes of each full frame, at an MTU of 1500."""
    smaller = FULL_MTU - mtu
    return rate_bps * (FRAME_PAYLOAD_BYTES - smaller) / (FRAME_BYTES - smaller) / 8


def tc_lines(device: str, shape: Shape) -> tuple[str, ...]:
    """Return the lines for `tc -batch -` that shape what `device` sends, whatever was on it before.

    They set the shape's rate, burst and impairment; all else follows from these. They can be repeated at any time.
    """
    rate, burst = f"{shape.rate_bps}bit", f"{shape.burst_bytes}b"
    queue = f"bfifo limit {leaf_limit_bytes(shape.rate_bps)}"
    leaves: tuple[str, ...] = (f"qdisc replace dev {device} parent 1:10 handle 10: {queue}",)
    if shape.impairment:
        netem = netem_words(shape.impairment, shape.delayed_packets)
        leaves = (
            f"qdisc replace dev {device} parent 1:10 handle 10: {netem}",
            f"qdisc replace dev {device} parent 10:1 handle 20: {queue}",
        )
    return (
        # The kernel does not replace an HTB root by another of the same handle. A plain FIFO drops the old tree.
        f"qdisc replace dev {device} root pfifo limit 1000",
        f"qdisc replace dev {device} root handle 1: htb default 10",
        f"class replace dev {device} parent 1: classid 1:10 htb rate {rate} ceil {rate} "
        f"burst {burst} cburst {burst} quantum {QUANTUM_BYTES}",
        *leaves,
    )


def offload_command(device: str) -> tuple[str, ...]:
    """Return the command that disables segmentation offload: counters then see the wire's frames, not super-packets."""
    return ("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")


def sends_frames(shape: Shape) -> bool:
    """Return whether this queue must receive single frames from the beginning.

    With segmentation offload off the kernel still queues up to 64 KiB of a connection as one packet. A queue of few
    packets drops it whole. At 10 mbit this left 8 % of the rate to a connection; single frames leave all of it.
    """
    return shape.leaf_bytes < 4 * _SUPER_PACKET_BYTES


MOST_SEGMENTS = 65535
"""The kernel's own value for the segments that a device takes in one packet."""


def frames_line(device: str) -> str:
    """Return the line for `ip -batch -` that makes connections hand single frames to `device`."""
    return segments_line(device, 1)


def segments_line(device: str, most: int = MOST_SEGMENTS) -> str:
    """Return the line for `ip -batch -` that limits the segments of a packet that connections hand to `device`."""
    return f"link set dev {device} gso_max_segs {most}"


def qdisc_show_command(device: str) -> tuple[str, ...]:
    """Return the first command whose output `parse_shape` reads; its output is JSON."""
    return ("tc", "-j", "qdisc", "show", "dev", device)


def class_show_command(device: str) -> tuple[str, ...]:
    """Return the second command whose output `parse_shape` reads, as text. `-d` adds the quantum.

    iproute2 6.1 has no JSON for HTB's classes (with -j it prints the same text).
    """
    return ("tc", "-d", "class", "show", "dev", device)


_CLASS = re.compile(
    r"class htb (?P<id>\S+) (?:root|parent \S+) (?:leaf \S+ )?prio \d+ quantum (?P<quantum>\d+) "
    r"rate (?P<rate>\S+) ceil (?P<ceil>\S+)(?: linklayer \S+)? "
    r"burst (?P<burst>[^\s/]+)(?:/\d+)?(?: mpu \S+)? cburst (?P<cburst>[^\s/]+)(?:/\d+)?"
)


def parse_shape(qdiscs: Sequence[Mapping[str, Any]], class_text: str) -> Shape | None:
    """Return the shaping in force, from the output of `qdisc_show_command` (decoded) and `class_show_command`.

    Return None without an HTB with the class 1:10 at the root. Raise ShapeError when a class cannot be parsed.
    """
    foreign = []
    root = leaf = netem = None
    # netem is itself a class for the disciplines under it.
    under = "10:1" if any(_is_netem(qdisc) for qdisc in qdiscs) else "1:10"
    for qdisc in qdiscs:
        if qdisc.get("kind") == "htb" and qdisc.get("handle") == "1:" and qdisc.get("root"):
            root = qdisc
        elif qdisc.get("kind") == "bfifo" and qdisc.get("parent") in (under, under.removesuffix("1")):
            leaf = qdisc
        elif _is_netem(qdisc):
            netem = qdisc
        else:
            foreign.append(f"qdisc {qdisc.get('kind')} {qdisc.get('handle', '')}".rstrip())
    own = None
    for line in filter(None, map(str.strip, class_text.splitlines())):
        if line.startswith("class htb 1:10 "):
            own = _CLASS.match(line)
            if own is None:
                raise ShapeError(
                    f"tc printed a class this version cannot read: {line!r}; iproute2 6.1 is known to work"
                )
        elif line.startswith("class ") and not (under == "10:1" and line.startswith("class netem 10:1 ")):
            foreign.append(" ".join(line.split()[:3]))
    if root is None or own is None:
        return None
    if int(str(root["options"]["default"]), 16) != 0x10:
        foreign.append(f"HTB's default class {root['options']['default']} (what it does not catch goes unshaped)")
    limit, impairment, beyond = parse_netem(netem["options"]) if netem is not None else (0, UNIMPAIRED, ())
    return Shape(
        rate_bps=_bits(own["rate"]),
        burst_bytes=_bytes(own["burst"]),
        ceil_bps=_bits(own["ceil"]),
        cburst_bytes=_bytes(own["cburst"]),
        leaf_bytes=int(leaf["options"]["limit"]) if leaf is not None else 0,
        quantum_bytes=int(own["quantum"]),
        foreign=(*foreign, *beyond),
        impairment=impairment,
        delayed_packets=limit,
    )


def _is_netem(qdisc: Mapping[str, Any]) -> bool:
    return qdisc.get("kind") == "netem" and qdisc.get("parent") == "1:10"


def compare(expected: Shape, actual: Shape | None) -> list[str]:
    """Return the differences between the kernel's shaping and the declared shaping as texts; empty without any."""
    if actual is None:
        return [f"not shaped; declared is {format_bit_rate(expected.rate_bps)}"]
    bursts = bursts_as_shown(expected.burst_bytes, expected.rate_bps)
    cbursts = bursts_as_shown(expected.cburst_bytes, expected.ceil_bps)
    checks: tuple[tuple[str, int, int, tuple[int, ...], Callable[[int], str]], ...] = (
        ("rate", expected.rate_bps, actual.rate_bps, (rate_as_shown(expected.rate_bps),), format_bit_rate),
        ("ceil", expected.ceil_bps, actual.ceil_bps, (rate_as_shown(expected.ceil_bps),), format_bit_rate),
        ("burst", expected.burst_bytes, actual.burst_bytes, bursts, format_size),
        ("cburst", expected.cburst_bytes, actual.cburst_bytes, cbursts, format_size),
        ("queue", expected.leaf_bytes, actual.leaf_bytes, (), format_size),
        ("quantum", expected.quantum_bytes, actual.quantum_bytes, (), format_size),
    )
    found = [
        f"{name} is {text(have)}; declared is {text(want)}"
        for name, want, have, shown, text in checks
        if have not in (want, *shown)
    ]
    found += compare_impairment(expected.impairment, actual.impairment)
    if expected.delayed_packets != actual.delayed_packets:
        found.append(
            f"netem holds {actual.delayed_packets} frames; declared is {expected.delayed_packets or 'no netem'}"
        )
    return [*found, *(f"{thing} is not the testbed's" for thing in actual.foreign)]


# tc's rounding. The kernel keeps a rate in whole bytes/s and a burst as its duration, in ticks of 64 ns;
# tc converts both into text with a few digits. The functions below repeat that arithmetic, so that `compare`
# accepts only the text of the declared value. A tolerance would also accept a wrong value.
# Digits that tc does not print cannot be compared: a rate of 123456789 bit/s is shown as 123456Kbit.

_TICKS_PER_US = 1000 / 64
_US = 1_000_000
_SUFFIXES: Mapping[str, int] = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY: Mapping[str, int] = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def rate_as_shown(rate_bps: int) -> int:
    """Return the rate that `tc` shows for this rate, in bits/s: whole bytes/s, and no digit below its unit."""
    shown, unit = rate_bps // 8 * 8, 1
    for _ in range(len(_SUFFIXES) - 1):
        if shown < 1000 or (shown % 1000 and shown < 1_000_000):
            break
        shown, unit = shown // 1000, unit * 1000
    return shown * unit


def bursts_as_shown(burst_bytes: int, rate_bps: int) -> tuple[int, int]:
    """Return the bursts that `tc` shows for this burst, in bytes: up to iproute2 6.13, and since."""
    bytes_per_s = rate_bps // 8
    us = _US * (burst_bytes / bytes_per_s)
    # Up to 6.13 tc truncates every intermediate value to a whole number, microseconds too.
    ticks = int(int(us) * _TICKS_PER_US)
    old = int(bytes_per_s * int(ticks / _TICKS_PER_US) / _US)
    ticks = math.ceil(us * _TICKS_PER_US)
    new = int(bytes_per_s * (ticks / _TICKS_PER_US) / _US)
    return _size_as_shown(old), _size_as_shown(new)


def _size_as_shown(size_bytes: int) -> int:
    for unit, slack in ((2**20, 1024), (2**10, 16)):
        nearest = round(size_bytes / unit)
        if size_bytes >= unit and abs(nearest * unit - size_bytes) < slack:
            return int(float(f"{nearest:g}") * unit)
    return size_bytes


def _bits(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMGT]?)bit", text)
    if match is None:
        raise ShapeError(f"tc printed the rate {text!r}; iproute2 6.1 prints such as 400Mbit")
    return int(match[1]) * _SUFFIXES[match[2]]


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9.e+]+)([KMG]?)b", text)
    if match is None:
        raise ShapeError(f"tc printed the size {text!r}; iproute2 6.1 prints such as 50Kb")
    return int(float(match[1]) * _BINARY[match[2]])


SMALLEST_FRAME_BYTES = 64
SHARES = ("corrupt", "duplicate", "reorder")
"""netem's words for the shares that only faults set; netem reports each under the same name."""
_QUIET: Mapping[str, Any] = {"ecn": False, "gap": 0}
"""netem's further output when no other impairment is set."""


def netem_limit_packets(impairment: Impairment, rate_bps: int, queue_bytes: int) -> int:
    """Return the number of frames that netem must hold so that it drops none: frames in the delay and in the queue.

    netem counts frames, not bytes; all may be as small as Ethernet allows.
    """
    longest_us = impairment.delay_us + impairment.jitter_us
    held_bytes = rate_bps * longest_us // 8_000_000 + queue_bytes
    return max(1000, -(-held_bytes // SMALLEST_FRAME_BYTES))


def netem_words(impairment: Impairment, limit_packets: int) -> str:
    """Return netem's options as `tc` reads them."""
    words = [f"netem limit {limit_packets}"]
    if impairment.delay_us:
        words.append(f"delay {impairment.delay_us}us")
        if impairment.jitter_us:
            words.append(f"{impairment.jitter_us}us")
    if impairment.loss_ppm:
        words.append(f"loss {format_share(impairment.loss_ppm)}")
    for name in SHARES:
        if share_ppm := getattr(impairment, f"{name}_ppm"):
            words.append(f"{name} {format_share(share_ppm)}")
    return " ".join(words)


def parse_netem(options: Mapping[str, Any]) -> tuple[int, Impairment, tuple[str, ...]]:
    """Return netem's limit in frames, its impairment, and its other effects, from `options` of `tc -j qdisc show`."""
    delay, loss = options.get("delay", {}), options.get("loss-random", {})
    shares = {name: options.get(name, {}) for name in SHARES}
    known = {"limit", "delay", "loss-random", "seed", *SHARES, *_QUIET}
    # tc sets a gap of 1 with a share of reordering: each frame is drawn for itself.
    quiet = {**_QUIET, "gap": 1} if shares["reorder"] else _QUIET
    beyond = [f"netem's {name}" for name in options if name not in known]
    beyond += [f"netem's {name} {options[name]}" for name, value in quiet.items() if options.get(name, value) != value]
    beyond += [
        f"netem's correlation of {what}"
        for what, of in {"delay": delay, "loss": loss, **shares}.items()
        if of.get("correlation")
    ]
    impairment = Impairment(
        delay_us=round(float(delay.get("delay", 0)) * 1e6),
        jitter_us=round(float(delay.get("jitter", 0)) * 1e6),
        loss_ppm=round(float(loss.get("loss", 0)) * 1e6),
        **{f"{name}_ppm": round(float(found.get(name, 0)) * 1e6) for name, found in shares.items()},
    )
    return int(options.get("limit", 0)), impairment, tuple(beyond)


def times_as_shown(time_us: int) -> set[int]:
    """Return the times that `tc` may show for this time, in µs: seconds in six digits.

    The kernel counts in ticks, which are less than a microsecond.
    """
    return {round(float(f"{near_us / 1e6:g}") * 1e6) for near_us in (time_us - 1, time_us, time_us + 1)}


def compare_impairment(expected: Impairment, actual: Impairment) -> list[str]:
    """Return the differences as texts."""
    found = []
    for name, want, have in (
        ("delay", expected.delay_us, actual.delay_us),
        ("jitter", expected.jitter_us, actual.jitter_us),
    ):
        if have not in times_as_shown(want) or (have == 0) != (want == 0):
            found.append(f"{name} is {format_duration(have / 1e6)}; declared is {format_duration(want / 1e6)}")
    for name in ("loss", *SHARES):
        want, have = (getattr(each, f"{name}_ppm") for each in (expected, actual))
        if want != have:
            found.append(f"{name} is {format_share(have)}; declared is {format_share(want)}")
    return found
