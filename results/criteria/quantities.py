"""Constants of measuring, and quantities as text for the terminal, the store and the report."""

from collections.abc import Mapping

from results.contract.move import SAMPLE_S, WINDOW_SAMPLES
from results.contract.network import FRAME_BYTES, FRAME_PAYLOAD_BYTES
from results.contract.texts import digits
from results.contract.verdict import Direction

US = 1_000_000
"""Microseconds in a second."""
PAYLOAD = FRAME_PAYLOAD_BYTES / FRAME_BYTES
"""TCP payload in a full Ethernet frame, as a fraction of what a NIC counts."""
QUOTA_WINDOW_S = float(WINDOW_SAMPLES * SAMPLE_S)
"""Kafka's default quota window. The machine's load is averaged over it as well, where a run has no throttled move."""
GAP_S = 3.0
"""Longest time between two samples of a host that still counts as sampled once a second."""
SECOND_S = 0.9
"""Shortest distance of two samples that counts as *one second*: a 1 Hz sampler jitters by some ms."""
READING_S = 0.05
"""Longest time that one reading of all logs of a host takes: it is a part of the window between two readings."""
DRIVER = "driver"
"""The host that the samples of the process that runs an experiment name."""
CPU_QUOTA = "cpu.quota"
"""What the testbed's own control group, or one above it, used of its CPU quota: a fraction, over about a second."""
NIC_BYTES: Mapping[Direction, str] = {"transmit": "nic.tx.bytes", "receive": "nic.rx.bytes"}
"""The metric that counts what a NIC carried in a direction."""


def rate(bytes_per_s: float) -> str:
    """Return a rate for people: ``9.85 MB/s``; -1, Kafka's describe of an absent quota, is ``none``."""
    return "none" if bytes_per_s == -1 else f"{size(bytes_per_s)}/s"


def size(size_bytes: float) -> str:
    """Return a size for people, decimal: ``112.4 MB``."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(size_bytes) >= factor:
            return f"{digits(size_bytes / factor)} {unit}"
    return f"{digits(size_bytes)} B"


def at(start_s: float) -> str:
    """Return an instant of the move: ``+3.2 s``."""
    return f"{start_s:+.1f} s"


def percent(fraction: float) -> str:
    """Return a fraction for people: ``98.5 %``."""
    return f"{fraction * 100:.1f} %"


def change_percent(ratio: float) -> str:
    """Return the change that a ratio is: ``+9.3 %`` for 1.093."""
    return f"{(ratio - 1) * 100:+.1f} %"
