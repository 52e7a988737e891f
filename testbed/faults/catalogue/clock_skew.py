"""A broker whose clock is wrong, as without time synchronization."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from testbed.faults import clocks
from testbed.faults.fault import parameter, remembered_field
from testbed.faults.parameters import show_ms, whole_ms
from testbed.faults.processes import ProcessFault, offset_us, require_running, restart
from testbed.provision.kafka_nodes import silent
from testbed.provision.testbed import Testbed
from testbed.software import faketime

MIN_US, MAX_US = 1_000_000, 86_400_000_000


def _offset(text: str) -> int:
    offset_us = whole_ms(text.removeprefix("-"))
    if not MIN_US <= offset_us <= MAX_US:
        raise ValueError("allowed is from 1s to 24h, ahead or (-1s) behind")
    return -offset_us if text.startswith("-") else offset_us


def _show(offset_us: int) -> str:
    return ("-" if offset_us < 0 else "") + show_ms(abs(offset_us))


@dataclass(frozen=True)
class ClockSkew(ProcessFault):
    """Kafka is restarted with another wall clock; its monotonic clock stays. Several faults add up."""

    kind: ClassVar[str] = "clock-skew"
    summary: ClassVar[str] = "Kafka on a host is restarted with a wall clock that is ahead or behind"
    deadline_s: ClassVar[float] = 90.0
    hinders: ClassVar[bool] = False

    by: int = parameter("ahead, such as 5min, or behind, such as -30s", _offset, _show)
    before: int | None = remembered_field()

    @classmethod
    def lacking(cls) -> str:
        """See `Fault.lacking`."""
        return faketime.no_library()

    @property
    def offset_us(self) -> int:
        """See `ProcessFault.offset_us`."""
        return self.by

    def prepare(self, testbed: Testbed) -> Self:
        """See `Fault.prepare`: remembers the present process. The host has the library, and can use it."""
        prepared = replace(self, before=require_running(testbed, self.host).pid)
        clocks.put_library(testbed.hosts[self.host], self.by)
        return prepared

    def apply(self, testbed: Testbed) -> None:
        """See `Fault.apply`."""
        restart(testbed, self.host)

    def verify(self, testbed: Testbed) -> str | None:
        """See `Fault.verify`: reads library and offset from the kernel, and the clock of a program with both."""
        found, want = clocks.loaded(testbed, self.host), offset_us(testbed, self.host)
        if found != want:
            return f"Kafka's clock is off by {found or 0} µs, not {want}" if found is not None else "Kafka does not run"
        if why := clocks.not_skewed(testbed.hosts[self.host], want):
            return f"a program with the library: {why}, not {want / 1e6:g} s"
        return next(iter(silent(testbed, [self.host])), None)

    def heal(self, testbed: Testbed) -> None:
        """See `Fault.heal`: restarts Kafka with the required clock, unless it has it."""
        if clocks.loaded(testbed, self.host) != offset_us(testbed, self.host):
            restart(testbed, self.host)


FAULT = ClockSkew
