"""One consumer of a load, as a process: `python -m testbed.workload.consume`."""

import contextlib
import gc
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from results.contract.document import decode
from testbed.workload.child import Orders, Reporter, now_us, run
from testbed.workload.delivered_envelopes import EnvelopeRow, envelope_rows
from testbed.workload.delivered_spans import UNORDERED, Row, rows_of, unreadable_row
from testbed.workload.messages import read_records
from testbed.workload.records import (
    PRELOADED,
    Envelope,
    Ints,
    ReadRecords,
    checksums,
    cut_headers,
    examine,
    preloader,
)
from testbed.workload.spec import ConsumerSpec

AT_ONCE = 1000
CHECKED_AT_ONCE = 4000
READY_S = 45.0
POSITION_S = 5.0
"""The longest wait for the first answers to fetches. A broker gives them within `fetch.wait.max.ms`, 0.1 s, also if a
partition is empty. A first response of 50 MB takes 2 s at 200 Mbit/s. With `READY_S` it is less than the load's
`START_S`. Without an answer of a partition, the consumer begins all the same, and its first record there is not judged.
"""


LAST_S = 10.0
"""The longest time for the records that a consumer still lacks when the producers have ended: usually those of 0.1 s.
What has not come by then while others came is behind, not withheld."""
AGAIN_S = 5.0
"""The longest time until a client fetches again and has an answer: it rests for 0.5 s after a fetch that failed, asks
for a new leader within 1 s, connects to it within 1 s, and receives 50 MB at 200 Mbit/s within 2 s."""


class _Unchecked:
    """The records that a consumer was given since its last check, without their payloads."""

    def __init__(self, topics: tuple[str, ...], envelopes: Mapping[int, Envelope]) -> None:
        self._numbers = {topic: number for number, topic in enumerate(topics)}
        self._envelopes = {**{preloader(topic): PRELOADED for topic in topics}, **envelopes}
        self.checked = self.compared = 0
        self._forget()

    def _forget(self) -> None:
        self._heads: list[bytes] = []
        self._sums: list[int] = []
        self._topics: list[int] = []
        self._partitions: list[int] = []
        self._read = ReadRecords()
        self._calls: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._sums)

    def where(self, topic: str, partition: int) -> tuple[int, int]:
        return self._numbers[topic], partition

    def add(self, messages: list[Any], now: int) -> None:
        """Add the messages that one call returned, in their order."""
        read = read_records(messages)
        self._heads.append(cut_headers(read.values))
        self._sums += checksums(read.values)
        read.values.clear()  # their headers and checksums are enough
        self._read.extend(read)
        self._partitions += [message.partition() for message in messages]
        if len(self._numbers) > 1:
            self._topics += [self._numbers[message.topic()] for message in messages]
        self._calls.append((now, len(messages)))

    def check(self, session: int) -> tuple[list[Row], list[EnvelopeRow], Ints]:
        """Forget the records; return their rows, those of flawed envelopes, and pairs of due and arrival time."""
        read, partitions = self._read, self._partitions
        heads = examine(b"".join(self._heads), self._sums, np.array(partitions, np.int64))
        topics = self._topics or np.zeros(len(self), np.int64)
        rows = rows_of(session, topics, partitions, read.offsets, heads)
        flawed, compared = envelope_rows(topics, partitions, read, heads, self._envelopes)
        due, arrived = heads.times_us, np.repeat(*np.array(self._calls, np.int64).T)
        self.checked += len(self)
        self.compared += compared
        self._forget()
        return rows, flawed, np.column_stack((due, arrived))[due > 0]


class _Consuming:
    def __init__(self, spec: ConsumerSpec, orders: Orders, reporter: Reporter) -> None:
        self.spec, self.orders, self.reporter = spec, orders, reporter
        self.unchecked = _Unchecked(spec.topics, orders.envelopes)
        self.rows: list[Row] = []
        self.flawed: list[EnvelopeRow] = []
        self.begins: list[tuple[int, int, int, int, int]] = []
        """Topic, partition, session, and the fields of a `SessionBegin`."""
        self.committed: dict[tuple[int, int], int] = {}
        """The last offset of each partition whose commit the group's coordinator acknowledged."""
        self.failed: dict[tuple[int, int], int] = {}
        """The lowest offset of each partition whose commit failed since the last assignment. The group may have it all
        the same: a coordinator may apply a request without an answer, after a later one. It refuses the commits of an
        earlier assignment."""
        self.reached: dict[tuple[int, int], int] = {}
        """The offset up to which each partition was delivered, or at which it began, as far as that is known."""
        self.given_in: dict[tuple[int, int], int] = {}
        """The last session in which each partition gave a record. Until then the client may not fetch it yet: it first
        asks the group's coordinator for the offset."""
        self.unplaced: set[tuple[int, int]] = set()
        """The partitions that were assigned again before the group had an offset: they began at an end of that time."""
        self.times: list[Ints] = []
        self.records = 0
        self.session = UNORDERED + 1
        self.error = ""
        self.next_report_us = 0
        self.assigned = self.reassigned = self.paused = self.joined = False
        self.client = Consumer(
            {
                "bootstrap.servers": orders.bootstrap,
                "client.id": spec.name,
                "group.id": spec.group,
                "auto.offset.reset": "earliest" if spec.from_beginning else "latest",
                "isolation.level": "read_committed",
                "enable.auto.commit": True,
                "on_commit": self._on_commit,
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
        """Join the group; return once the group has assigned partitions to this member (possibly none).

        Before that, wait until the client has a position in each of them: it must get every record written later.
        """
        self.client.subscribe(list(self.spec.topics), on_assign=self._on_assign)
        deadline = time.monotonic() + READY_S
        while not self.assigned and not self.orders.stopping.is_set():
            if time.monotonic() > deadline:
                group = self.spec.group
                raise RuntimeError(f"group {group} assigned nothing within {READY_S:g} s: {self.error or 'no answer'}")
            self.take(0.1)
        session, deadline = self.session, time.monotonic() + POSITION_S
        ends: dict[tuple[int, int], int] = {}
        while not self.orders.stopping.is_set():
            ends = {
                self.unchecked.where(each.topic, each.partition): self.end(each) for each in self.client.assignment()
            }
            if all(end >= 0 for end in ends.values()) or time.monotonic() > deadline:
                break
            self.take(0.05)
        if session == self.session:
            # The lookup of the position, at the log's end, came before the fetch.
            highest = {where: 0 if self.spec.from_beginning else end for where, end in ends.items() if end >= 0}
            self.begins += [(*where, session, 0, offset) for where, offset in highest.items()]
            for where, offset in highest.items():
                self.reached.setdefault(where, offset)
                self.given_in.setdefault(where, session)
        self.joined = True

    def end(self, partition: TopicPartition) -> int:
        """Return the end of a partition that the last fetch returned; below 0 before the first one."""
        try:
            return int(self.client.get_watermark_offsets(partition, cached=True)[1])
        except KafkaException:
            return -1

    def _on_commit(self, error: Any, partitions: Any) -> None:
        for each in partitions:
            where = self.unchecked.where(each.topic, each.partition)
            if each.offset < 0:
                continue
            if error is None and each.error is None:
                self.committed[where] = each.offset
            else:
                self.failed[where] = min(self.failed.get(where, each.offset), each.offset)

    def _on_assign(self, consumer: Any, partitions: Any) -> None:
        self.assigned = self.reassigned = True
        for each in partitions:
            where = self.unchecked.where(each.topic, each.partition)
            offset = self.committed.get(where)
            if offset is None:
                if self.joined:
                    self.unplaced.add(where)
            else:
                lowest = min(offset, self.failed.get(where, offset))
                self.begins.append((*where, self.session + 1, lowest, offset))
        self.failed.clear()
        consumer.assign(partitions)
        if self.paused:
            consumer.pause(partitions)

    def take(self, wait_s: float) -> None:
        """Read the available records; wait for the first one only."""
        first = self.client.poll(wait_s)
        if self.reassigned:
            # One record came with the assignment, and after it: the client discards what it has of a former one.
            self.begin_session()
        messages: list[Any] = [] if first is None else [first, *self.client.consume(AT_ONCE, 0)]
        if self.reassigned:
            self.check(self.session)
        errors = [message for message in messages if message.error() is not None]
        read = [message for message in messages if message.error() is None] if errors else messages
        self.records += len(read)
        self.unchecked.add(read, now_us())
        # `consume` may have returned records from before and after the assignment.
        session = UNORDERED if self.reassigned else self.session
        if self.reassigned or errors or len(self.unchecked) >= CHECKED_AT_ONCE:
            self.check(session)
        for message in errors:
            error = message.error()
            self.error = self.error or f"{error.name()}: {error.str()}"
            if error.code() == KafkaError._BAD_MSG:
                where = self.unchecked.where(message.topic(), message.partition())
                self.rows.append(unreadable_row(session, *where, message.offset()))
        if self.reassigned:
            self.begin_session()

    def take_until_one_comes(self, most_s: float) -> None:
        """Read available records until there is one, for `most_s` at most: an error also ends a call of the client."""
        before, end = self.records, time.monotonic() + most_s
        self.take(0.05)
        while self.records == before and time.monotonic() < end:
            self.take(0.05)

    def begin_session(self) -> None:
        self.check(self.session)
        self.session, self.reassigned = self.session + 1, False

    def check(self, session: int) -> None:
        """Check the records that came since the last check."""
        if len(self.unchecked):
            rows, flawed, times = self.unchecked.check(session)
            self.rows += rows
            for topic, partition, _session, _producer, offset, _place, records in rows:
                where = topic, partition
                self.given_in[where] = session
                self.reached[where] = max(self.reached.get(where, 0), offset + records)
            self.flawed += flawed
            self.times.append(times)

    def consume(self, began_us: int) -> None:
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

    def finish(self) -> list[list[int | None]]:
        """Consume what the producers wrote last; return a row of each partition of which acknowledged records lack.

        A row has the topic's number, the partition, and the fields of a `Remainder`. Where nothing comes any more, each
        leader is asked for its end: it answers the requests of a connection in order, so what was on its way has come.
        Of a partition that the consumer lost meanwhile, or does not fetch yet, the answer says nothing.
        """
        ends = {self.unchecked.where(topic, partition): end for topic, partition, end in self.orders.ends}
        begun = heard = time.monotonic()
        answered: dict[tuple[int, int], int] = {}
        while not self.paused and (left := [where for where in ends if self._lacks(where, ends[where])]):
            before, quiet = self.records, time.monotonic() - heard > POSITION_S
            if quiet:
                answered = self._leaders_ends(left)
            self.take_until_one_comes(AGAIN_S if quiet else 0.0)
            fetched = self._fetched() if answered else set()  # once: an assignment may be thousands of partitions
            answered = {where: end for where, end in answered.items() if where in fetched}
            self.check(self.session)
            if self.records > before:
                heard = time.monotonic()
                answered = {}
            if (quiet and self.records == before) or heard - begun > LAST_S:
                break
            if now_us() >= self.next_report_us:
                self.report()
        lacking = [] if self.paused else [where for where in ends if self._lacks(where, ends[where])]
        return [[*where, self.reached[where], ends[where], answered.get(where)] for where in lacking]

    def _lacks(self, where: tuple[int, int], end: int) -> bool:
        """Return whether records of a partition are missing; False where it is not known where it began."""
        return where not in self.unplaced and self.reached.get(where, end) < end

    def _fetched(self) -> set[tuple[int, int]]:
        """Return the assigned partitions that have given a record since their assignment, or had a position before."""
        assigned = {self.unchecked.where(each.topic, each.partition) for each in self.client.assignment()}
        return {where for where in assigned if self.given_in.get(where) == self.session}

    def _leaders_ends(self, partitions: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Return the ends of these partitions for consumers, where the leader answers within `POSITION_S` in all."""
        deadline, found = time.monotonic() + POSITION_S, {}
        for topic, partition in partitions:
            if (left_s := deadline - time.monotonic()) <= 0:
                break
            asked = TopicPartition(self.spec.topics[topic], partition)
            with contextlib.suppress(KafkaException):
                answer = self.client.get_watermark_offsets(asked, timeout=left_s)
                if answer is not None:
                    found[topic, partition] = int(answer[1])
        return found

    def lag(self) -> int | None:
        """Return the records between this member and the ends of its partitions; None if no end is known."""
        positions = self.client.position(self.client.assignment())
        if self.paused:
            # librdkafka knows no end of a partition that it does not fetch, so the brokers are asked.
            asked = [TopicPartition(p.topic, p.partition, OFFSET_END) for p in positions]
            ends = [p.offset for p in self.client.offsets_for_times(asked, timeout=1.0)]
        else:
            ends = [self.end(each) for each in positions]
        both = zip(ends, (p.offset for p in positions), strict=True)
        found = [max(0, end - offset) for end, offset in both if end >= 0 and offset >= 0]
        return sum(found) if found else None

    def report(self, **more: Any) -> None:
        now = now_us()
        self.next_report_us = (now // 1_000_000 + 1) * 1_000_000
        self.check(self.session)
        times, self.times = self.times, []
        rows, self.rows = self.rows, []
        flawed, self.flawed = self.flawed, []
        begins, self.begins = self.begins, []
        try:
            lag = self.lag()
        except KafkaException:
            lag = None  # in the middle of a rebalance
        self.reporter.report(
            {
                "t": now,
                "records": self.records,
                "delivered": rows,
                "begins": begins,
                "envelopes": flawed,
                "checked": self.unchecked.checked,
                "compared": self.unchecked.compared,
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
        consuming.report(last=consuming.finish(), final=True)
    finally:
        consuming.client.close()


if __name__ == "__main__":
    run(main)
