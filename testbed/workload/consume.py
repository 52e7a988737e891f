"""One consumer of a load, as a process: `python -m testbed.workload.consume`."""

import gc
import time
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from results.contract.document import decode
from testbed.workload.child import Orders, Reporter, now_us, run
from testbed.workload.delivered_spans import UNORDERED, Row, rows_of, unreadable_row
from testbed.workload.records import Ints, cut_headers, intact, parse_headers
from testbed.workload.spec import ConsumerSpec

AT_ONCE = 1000
CHECKED_AT_ONCE = 4000
CHECKSUMS = 13
"""The checksum of one value in so many is computed: that of each would cost the consumer a quarter of its CPU (see
`docs/measurements/workload.md`). A full batch of 16 KiB has 15 records of 1 KiB, so one of them at least is checked.
It is a prime, so that in batches of any size each position is checked in its turn."""
READY_S = 45.0


class _Delivered:
    """The records that a consumer was given since its last report, without their payloads."""

    def __init__(self, topics: tuple[str, ...]) -> None:
        self._numbers = {topic: number for number, topic in enumerate(topics)}
        self.checked = 0
        self._next_checksum = 0
        self._forget()

    def _forget(self) -> None:
        self._heads: list[bytes] = []
        self._topics: list[int] = []
        self._partitions: list[int] = []
        self._offsets: list[int] = []
        self._changed: list[int] = []
        self._calls: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._offsets)

    def topic(self, message: Any) -> int:
        """Return the number of a message's topic."""
        return self._numbers[message.topic()]

    def add(self, messages: list[Any], now: int) -> None:
        """Add the messages that one call returned, in their order."""
        values, before = [message.value() for message in messages], len(self)
        self._heads.append(cut_headers(values))
        self._partitions += [message.partition() for message in messages]
        self._offsets += [message.offset() for message in messages]
        if len(self._numbers) > 1:
            self._topics += [self.topic(message) for message in messages]
        self._calls.append((now, len(values)))
        checked = range(self._next_checksum, len(values), CHECKSUMS)
        self._changed += [before + number for number in checked if not intact(values[number])]
        self._next_checksum += len(checked) * CHECKSUMS - len(values)
        self.checked += len(checked)

    def check(self, session: int) -> tuple[list[Row], Ints]:
        """Forget the records, and return their rows, and pairs of due and arrival time of those that have them."""
        heads = parse_headers(b"".join(self._heads))
        topics = self._topics or np.zeros(len(heads), np.int64)
        rows = rows_of(session, topics, self._partitions, self._offsets, heads, self._changed)
        due = heads["time_us"].astype(np.int64)
        arrived = np.repeat(*np.array(self._calls, np.int64).T)
        self._forget()
        return rows, np.column_stack((due, arrived))[due > 0]


class _Consuming:
    def __init__(self, spec: ConsumerSpec, orders: Orders, reporter: Reporter) -> None:
        self.spec, self.orders, self.reporter = spec, orders, reporter
        self.delivered = _Delivered(spec.topics)
        self.rows: list[Row] = []
        self.times: list[Ints] = []
        self.records = 0
        self.session = UNORDERED + 1
        self.error = ""
        self.next_report_us = 0
        self.assigned = self.reassigned = self.paused = False
        self.client = Consumer(
            {
                "bootstrap.servers": orders.bootstrap,
                "client.id": spec.name,
                "group.id": spec.group,
                "auto.offset.reset": "earliest" if spec.from_beginning else "latest",
                "isolation.level": "read_committed",
                "enable.auto.commit": True,
                "check.crcs": True,  # Java's default
                "fetch.wait.max.ms": 100,  # librdkafka's name of Java's fetch.max.wait.ms
                "reconnect.backoff.max.ms": 1000,
                "socket.nagle.disable": True,
                "queued.max.messages.kbytes": 65536,
                "log_level": 3,
                **spec.client,
            }
        )

    def join(self) -> None:
        """Join the group; return once the group has assigned partitions to this member (possibly none)."""
        self.client.subscribe(list(self.spec.topics), on_assign=self._on_assign)
        deadline = time.monotonic() + READY_S
        while not self.assigned and not self.orders.stopping.is_set():
            if time.monotonic() > deadline:
                group = self.spec.group
                raise RuntimeError(f"group {group} assigned nothing within {READY_S:g} s: {self.error or 'no answer'}")
            self.take(0.1)

    def _on_assign(self, consumer: Any, partitions: Any) -> None:
        self.assigned = self.reassigned = True
        consumer.assign(partitions)
        if self.paused:
            consumer.pause(partitions)

    def take(self, wait_s: float) -> None:
        """Read the available records; wait for the first one only."""
        first = self.client.poll(wait_s)
        messages: list[Any] = [] if first is None else [first, *self.client.consume(AT_ONCE, 0)]
        if self.reassigned:
            self.check(self.session)
        errors = [message for message in messages if message.error() is not None]
        read = [message for message in messages if message.error() is None] if errors else messages
        self.records += len(read)
        self.delivered.add(read, now_us())
        # The call may have returned records from before and after the assignment.
        session = UNORDERED if self.reassigned else self.session
        if self.reassigned or errors or len(self.delivered) >= CHECKED_AT_ONCE:
            self.check(session)
        for message in errors:
            error = message.error()
            self.error = self.error or f"{error.name()}: {error.str()}"
            if error.code() == KafkaError._BAD_MSG:
                where = self.delivered.topic(message), message.partition(), message.offset()
                self.rows.append(unreadable_row(session, *where))
        if self.reassigned:
            self.session, self.reassigned = self.session + 1, False

    def check(self, session: int) -> None:
        """Check the records that came since the last check."""
        if len(self.delivered):
            rows, times = self.delivered.check(session)
            self.rows += rows
            self.times.append(times)

    def consume(self, began_us: int) -> None:
        """Consume until an order stops it."""
        while not self.orders.stopping.is_set():
            now = now_us()
            since_s = (now - began_us) / 1e6
            wanted = self.orders.paused or any(p.begin_s <= since_s < p.end_s for p in self.spec.pauses)
            if wanted != self.paused:
                self.paused = wanted
                partitions = self.client.assignment()
                (self.client.pause if wanted else self.client.resume)(partitions)
            self.take(0.05)
            if now >= self.next_report_us:
                self.report()

    def lag(self) -> int | None:
        """Return the records between this member and the ends of its partitions; None if no end is known."""
        positions = self.client.position(self.client.assignment())
        if self.paused:
            # librdkafka knows no end of a partition that it does not fetch, so the brokers are asked.
            asked = [TopicPartition(p.topic, p.partition, OFFSET_END) for p in positions]
            ends = [p.offset for p in self.client.offsets_for_times(asked, timeout=1.0)]
        else:
            ends = [self.client.get_watermark_offsets(p, cached=True)[1] for p in positions]
        both = zip(ends, (p.offset for p in positions), strict=True)
        found = [max(0, end - offset) for end, offset in both if end >= 0 and offset >= 0]
        return sum(found) if found else None

    def report(self, **more: Any) -> None:
        """Report the figures of the last second."""
        now = now_us()
        self.next_report_us = (now // 1_000_000 + 1) * 1_000_000
        self.check(self.session)
        times, self.times = self.times, []
        rows, self.rows = self.rows, []
        try:
            lag = self.lag()
        except KafkaException:
            lag = None  # in the middle of a rebalance
        self.reporter.report(
            {
                "t": now,
                "records": self.records,
                "delivered": rows,
                "checked": self.delivered.checked,
                "lag": lag,
                "cpu": self.reporter.cpu_cores(),
                "error": self.error,
                **more,
            },
            np.concatenate(times) if times else None,
            by_end=True,
        )


def main(orders: Orders, reporter: Reporter) -> None:
    """Run the consumer; see `testbed.workload.child.run`."""
    gc.disable()
    consuming = _Consuming(decode(ConsumerSpec, orders.spec, "the consumer's specification"), orders, reporter)
    try:
        consuming.join()
        reporter.report({"ready": True})
        while not orders.going.is_set():
            consuming.take(0.1)
        reporter.cpu_cores()
        consuming.consume(orders.began_us)
        consuming.report(final=True)
    finally:
        consuming.client.close()


if __name__ == "__main__":
    run(main)
