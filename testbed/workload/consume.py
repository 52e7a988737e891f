"""One consumer of a load, as a process: `python -m testbed.workload.consume`."""

import gc
import time
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from results.contract.document import decode
from testbed.workload.child import Orders, Reporter, now_us, run
from testbed.workload.records import read_headers
from testbed.workload.spec import ConsumerSpec

AT_ONCE = 1000
READY_S = 45.0


class _Consuming:
    def __init__(self, spec: ConsumerSpec, orders: Orders, reporter: Reporter) -> None:
        self.spec, self.orders, self.reporter = spec, orders, reporter
        self.times: list[int] = []
        self.records = 0
        self.error = ""
        self.next_report_us = 0
        self.assigned = self.paused = False
        self.client = Consumer(
            {
                "bootstrap.servers": orders.bootstrap,
                "client.id": spec.name,
                "group.id": spec.group,
                "auto.offset.reset": "earliest" if spec.from_beginning else "latest",
                "isolation.level": "read_committed",
                "enable.auto.commit": True,
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
        self.assigned = True
        consumer.assign(partitions)
        if self.paused:
            consumer.pause(partitions)

    def take(self, wait_s: float) -> None:
        """Read the available records; wait for the first one only."""
        first = self.client.poll(wait_s)
        if first is None:
            return
        values = []
        for message in (first, *self.client.consume(AT_ONCE, 0)):
            error = message.error()
            if error is None:
                values.append(message.value())
            else:
                self.error = self.error or f"{error.name()}: {error.str()}"
        if not values:
            return
        now = now_us()
        self.records += len(values)
        for each in read_headers(values)["time_us"].tolist():
            if each > 0:
                self.times.append(each)
                self.times.append(now)

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
        times, self.times = self.times, []
        try:
            lag = self.lag()
        except KafkaException:
            lag = None  # in the middle of a rebalance
        self.reporter.report(
            {
                "t": now,
                "records": self.records,
                "lag": lag,
                "cpu": self.reporter.cpu_cores(),
                "error": self.error,
                **more,
            },
            times,
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
