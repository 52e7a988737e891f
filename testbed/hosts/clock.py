"""The offset between the clocks of two machines, measured over SSH as NTP does, with its uncertainty.

An exchange asks the other machine for its time. The answer was given between the question and the answer's arrival: the
offset is known to half of that time. Of several exchanges the shortest counts.
"""

import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import paramiko

from testbed.errors import TestbedError

EXCHANGES = 20
_ANSWER_S = 5.0
_SERVE = "while read -r _; do date +%s%N; done"


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """By how much another machine's clock is ahead of this one's, ± `unsure_s`, in seconds."""

    offset_s: float
    unsure_s: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange: this machine's clock before and after it, and the other's in between, in ns since the epoch."""

    asked_ns: int
    remote_ns: int
    answered_ns: int

    @property
    def offset(self) -> ClockOffset:
        """Return the offset of the middle, and half of the exchange's duration."""
        middle_ns = (self.asked_ns + self.answered_ns) / 2
        return ClockOffset((self.remote_ns - middle_ns) / 1e9, (self.answered_ns - self.asked_ns) / 2e9)


class Sessions(Protocol):
    """Something that opens SSH sessions on a machine."""

    @property
    def name(self) -> str:
        """Return the machine's name for errors."""

    def session(self) -> paramiko.Channel:
        """Return a new channel."""


def closest(exchanges: Iterable[Exchange]) -> ClockOffset:
    """Return the offset by the exchange that is known best. Pure."""
    return min((each.offset for each in exchanges), key=lambda offset: offset.unsure_s)


def measure_offset(machine: Sessions) -> ClockOffset:
    """Measure by how much the machine's clock is ahead of this one's. Raise `TestbedError` when it does not answer."""
    found = []
    with closing(machine.session()) as channel:
        channel.settimeout(_ANSWER_S)
        try:
            channel.exec_command(_SERVE)
            stream = channel.makefile("r")
            for _ in range(EXCHANGES):
                asked = time.time_ns()
                channel.sendall(b"\n")
                remote = int(stream.readline())
                found.append(Exchange(asked, remote, time.time_ns()))
        except (OSError, ValueError, paramiko.SSHException) as error:
            raise TestbedError(f"{machine.name}: its clock was not read: {error or type(error).__name__}") from error
    return closest(found)
