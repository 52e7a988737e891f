"""Delay and loss in netem's words: what is asked of it, what it says of itself, and where the two differ. Pure."""

from collections.abc import Mapping
from typing import Any

from testbed.topology.links import Impairment
from testbed.units import format_duration, format_share

SMALLEST_FRAME_BYTES = 64
_QUIET: Mapping[str, Any] = {"ecn": False, "gap": 0}
"""What netem reports of itself besides, when nothing else was asked of it."""


def netem_limit_packets(impairment: Impairment, rate_bps: int, queue_bytes: int) -> int:
    """How many frames netem must hold so that none is dropped for being under way: those of the delay, and the queue.

    netem counts frames, not bytes; all may be as small as Ethernet allows.
    """
    longest_us = impairment.delay_us + impairment.jitter_us
    held_bytes = rate_bps * longest_us // 8_000_000 + queue_bytes
    return max(1000, -(-held_bytes // SMALLEST_FRAME_BYTES))


def netem_words(impairment: Impairment, limit_packets: int) -> str:
    """The discipline as `tc` reads it."""
    words = [f"netem limit {limit_packets}"]
    if impairment.delay_us:
        words.append(f"delay {impairment.delay_us}us")
        if impairment.jitter_us:
            words.append(f"{impairment.jitter_us}us")
    if impairment.loss_ppm:
        words.append(f"loss {format_share(impairment.loss_ppm)}")
    return " ".join(words)


def parse_netem(options: Mapping[str, Any]) -> tuple[int, Impairment, tuple[str, ...]]:
    """Its limit in frames, what it does, and what it does beyond that, from `options` of `tc -j qdisc show`."""
    delay, loss = options.get("delay", {}), options.get("loss-random", {})
    known = {"limit", "delay", "loss-random", "seed", *_QUIET}
    beyond = [f"netem's {name}" for name in options if name not in known]
    beyond += [f"netem's {name} {options[name]}" for name, quiet in _QUIET.items() if options.get(name, quiet) != quiet]
    beyond += [
        f"netem's correlation of {what}" for what, of in (("delay", delay), ("loss", loss)) if of.get("correlation")
    ]
    impairment = Impairment(
        delay_us=round(float(delay.get("delay", 0)) * 1e6),
        jitter_us=round(float(delay.get("jitter", 0)) * 1e6),
        loss_ppm=round(float(loss.get("loss", 0)) * 1e6),
    )
    return int(options.get("limit", 0)), impairment, tuple(beyond)


def compare_impairment(expected: Impairment, actual: Impairment) -> list[str]:
    """Where the two differ, in words. Times may differ by the kernel's tick, which is less than a microsecond."""
    found = []
    for name, want, have in (
        ("delay", expected.delay_us, actual.delay_us),
        ("jitter", expected.jitter_us, actual.jitter_us),
    ):
        if abs(want - have) > 1 or (have == 0) != (want == 0):
            found.append(f"{name} is {format_duration(have / 1e6)}; declared is {format_duration(want / 1e6)}")
    if expected.loss_ppm != actual.loss_ppm:
        found.append(f"loss is {format_share(actual.loss_ppm)}; declared is {format_share(expected.loss_ppm)}")
    return found
