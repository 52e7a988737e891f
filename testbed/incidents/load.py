"""One open-loop producer: a record is due at its time, and its latency counts from then, sent late or not.

Its clock is independent of the cluster: when that is slow, records wait and their latency says so (no coordinated
omission). One thread in the driver, one topic, no keys: a load to see an incident by, not a benchmark.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from results.schema import Sample
from testbed.incidents.evidence import DRIVER
from testbed.incidents.model import Load
from testbed.probes.recorder import now_us
from testbed.wait import wait_for
from testbed.workload.preload import Fill
from testbed.workload.records import Recipe

GIVE_UP_S = 30.0
"""A record that is not acknowledged by then is given up."""

_WARM = 20
"""So many acknowledgements show that the load runs."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the load did. `failed` records may or may not be there."""

    sent: int
    acknowledged: int
    failed: int
    error: str | None
    places: Mapping[int, int]
    """Partition → how many records were sent to it."""


class OpenLoop:
    """Produces from `start` to `stop`; `samples` gets one latency for each record, at the time it was due."""

    def __init__(
        self,
        bootstrap: Sequence[str],
        load: Load,
        partitions: int,
        seed: int,
        add: Callable[[list[Sample]], None],
    ) -> None:
        self._load, self._partitions, self._add = load, partitions, add
        self.recipe = Recipe(load.record_bytes, seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._waiting: dict[tuple[int, int], int] = {}
        self._found: list[Sample] = []
        self._sent = self._acknowledged = self._failed = 0
        self._error: str | None = None
        self._places = dict.fromkeys(range(partitions), 0)
        self._producer = Producer(
            {
                "bootstrap.servers": ",".join(bootstrap),
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "none",
                "linger.ms": 0,
                # What it warns of while brokers come and go belongs to the incident, not on the terminal.
                "log_level": 3,
                "message.timeout.ms": int(GIVE_UP_S * 1000),
                "queue.buffering.max.kbytes": 262144,
                "queue.buffering.max.messages": 100000,
            }
        )

    def start(self, timeout_s: float = 20.0) -> None:
        """Begin; returns once records are acknowledged, so that connections are no part of anybody's latency.

        Raises `WaitTimeout` when none is.
        """
        self._thread.start()
        wait_for(lambda: self._acknowledged, lambda n: n >= _WARM, timeout_s, 0.05, "the load's first acknowledgements")

    def stop(self) -> Written:
        """End; waits for what is under way until it is acknowledged or given up."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        return Written(self._sent, self._acknowledged, self._failed, self._error, dict(self._places))

    def fills(self) -> list[Fill]:
        """What the audit is to find, partition by partition."""
        return [
            Fill(self._load.topic, [partition], places, self.recipe)
            for partition, places in self._places.items()
            if places
        ]

    def _run(self) -> None:
        try:
            self._produce()
        except KafkaException as error:
            # Nobody misses the records that were not sent: that the load ended early must be said.
            self._error = self._error or f"the load ended early: {error}"

    def _produce(self) -> None:
        pool = self.recipe.pool()
        interval_us = self._load.record_bytes / self._load.rate_bytes_per_s * 1e6
        begun_us, number = now_us(), 0
        while not self._stopping.is_set():
            due_us = begun_us + round(number * interval_us)
            wait_s = (due_us - now_us()) / 1e6
            if wait_s > 0:
                self._producer.poll(0)
                self._report()
                self._stopping.wait(min(wait_s, 0.05))
                continue
            self._send(pool, number % self._partitions, due_us)
            number += 1
        self._producer.flush(GIVE_UP_S + 5.0)
        ended_us = now_us()
        for due_us in self._waiting.values():  # never heard of: as late as we know
            self._found.append(_latency(due_us, ended_us, self._load.topic))
            self._failed += 1
        self._waiting.clear()
        self._report()

    def _send(self, pool: bytes, partition: int, due_us: int) -> None:
        place = self._places[partition]
        value = self.recipe.record(pool, partition, place)

        def delivered(error: KafkaError | None, _message: Any) -> None:
            self._waiting.pop((partition, place), None)
            self._found.append(_latency(due_us, now_us(), self._load.topic))
            if error is None:
                self._acknowledged += 1
            else:
                self._failed += 1
                self._error = self._error or error.str()

        self._places[partition] = place + 1
        self._sent += 1
        self._waiting[partition, place] = due_us
        while True:
            try:
                self._producer.produce(self._load.topic, value, partition=partition, on_delivery=delivered)
                return
            except BufferError:
                # A full queue delays what follows; its latency counts all the same from when it was due.
                self._producer.poll(0.05)

    def _report(self) -> None:
        if self._found:
            found, self._found = self._found, []
            self._add(found)


def _latency(due_us: int, now: int, topic: str) -> Sample:
    return Sample(due_us, DRIVER, "load.latency", (now - due_us) / 1e6, topic)
