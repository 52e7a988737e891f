"""An incident's load: one producer of `testbed.workload`, told as the expectations ask for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from results.contract.schema import Sample
from testbed.incidents.evidence import DRIVER
from testbed.incidents.model import Load
from testbed.workload import records as places
from testbed.workload.spec import ProducerSpec
from testbed.workload.workload import Workload

NAME = "producer-1"
GIVE_UP_S = 30.0
"""A record that is not acknowledged by then is given up."""

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """What the load did. `failed` records may or may not be there; `held` is False when its rate was not kept."""

    sent: int
    acknowledged: int
    failed: int
    error: str | None
    held: bool = True
    records: tuple[places.WrittenRecords, ...] = field(default=(), repr=False)
    """What the audit is to find."""


class OpenLoop:
    """Produces from `start` to `stop`; `load.latency` has each record's latency in the second in which it was due."""

    def __init__(
        self,
        bootstrap: Sequence[str],
        load: Load,
        partitions: int,
        seed: int,
        add: Callable[[list[Sample]], None],
    ) -> None:
        self._topic, self._add = load.topic, add
        spec = ProducerSpec(
            NAME,
            load.topic,
            tuple(range(partitions)),
            float(load.rate_bytes_per_s),
            record_bytes=load.record_bytes,
            linger_ms=0.0,
            give_up_s=GIVE_UP_S,
        )
        self._workload = Workload(bootstrap, [spec], seed, self._heard)

    def start(self, timeout_s: float = 60.0) -> None:
        """Begin; returns once records are acknowledged, so that connections are no part of anybody's latency.

        Raises `TestbedError` when none is.
        """
        self._workload.start(timeout_s)

    def stop(self) -> Written:
        """End; waits for what is under way until it is acknowledged or given up."""
        result = self._workload.stop()
        if not result.processes:  # it never began
            return Written(0, 0, 0, None)
        found = result.process(NAME)
        error = found.error or (None if found.ended else found.why)
        return Written(
            found.sent, found.acked, found.failed + found.in_doubt, error or None, found.held, result.written
        )

    def _heard(self, samples: list[Sample]) -> None:
        self._add([*samples, *(each for sample in samples for each in self._latencies(sample))])

    def _latencies(self, sample: Sample) -> list[Sample]:
        """A bucket's count as so many records, at the beginning of the second in which they were due."""
        if sample.metric != "client.produce.latency" or sample.label is None:
            return []
        begin_us = sample.ts_us - _SECOND_US
        return [Sample(begin_us, DRIVER, "load.latency", int(sample.label) / 1e6, self._topic)] * int(sample.value)
