"""The offset between the clocks of two machines, measured over SSH as NTP does, with its uncertainty.

An exchange asks the other machine for its time. The answer was given between the question and the answer's arrival: the
offset is known to half of that time. Of several exchanges the shortest counts.
"""

import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

import paramiko

from testbed.errors import TestbedError
from testbed.hosts.ssh import SshHost

EXCHANGES = 20
_ANSWER_S = 5.0
_SERVE = "exec sh -c 'while read -r _; do date +%s%N; done'"
"""The user's own shell may have another language: fish has no `do`."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """By how much another machine's clock is ahead of this one's, ± `unsure_s`, in seconds."""

    offset_s: float
    unsure_s: float


def offset_of(asked_ns: int, remote_ns: int, answered_ns: int) -> ClockOffset:
    """Return the offset by one exchange: this clock before and after it, the other's in between, in ns. Pure."""
    middle_ns = (asked_ns + answered_ns) / 2
    return ClockOffset((remote_ns - middle_ns) / 1e9, (answered_ns - asked_ns) / 2e9)


def closest(offsets: Iterable[ClockOffset]) -> ClockOffset:
    """Return the offset that is known best. Pure."""
    return min(offsets, key=lambda offset: offset.unsure_s)


def measure_offset(machine: SshHost) -> ClockOffset:
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
                found.append(offset_of(asked, remote, time.time_ns()))
        except (OSError, ValueError, paramiko.SSHException) as error:
            raise TestbedError(f"{machine.name}: its clock was not read: {error or type(error).__name__}") from error
    return closest(found)
