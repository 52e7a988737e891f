"""The preload of topics before a move, and the audit from the beginning to the end of every partition."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec  # type: ignore[attr-defined]

from results.contract.texts import counted
from testbed.errors import TestbedError
from testbed.wait import wait_for
from testbed.workload.audit import Audit, Ledger
from testbed.workload.connections import BATCH_BYTES
from testbed.workload.consume import AGAIN_S
from testbed.workload.messages import read_records
from testbed.workload.producer_epochs import ReadBatches, sent_again
from testbed.workload.records import (
    PRELOADED,
    Fill,
    Payloads,
    Where,
    WrittenRecords,
    timestamp_ms,
)
from testbed.workload.time_lookups import RightAnswer, TimeLookup, rounds, time_lookups

LED_S, LOG_S, LOOK_S = 30.0, 0.02, 0.2
"""A leader answers once it has made the partition's log, which takes milliseconds: with 10,000 partitions, minutes."""
CONFIG_S = 10.0
TIMES_OF = "message.timestamp.type"
"""The property of a topic that says who sets timestamps: the producer (CreateTime) or the broker (LogAppendTime)."""
SHARED_BATCH_BYTES = 262144
"""The size of a batch without followers, where each one waits 0.3 s for the object store. With followers it is
`BATCH_BYTES`: a broker cuts a fetch response at its size limit, mostly within a batch, and the follower fetches that
part again. With large batches that is several per cent of the bytes."""
MOST_TIMEOUT_MS = 2**31 - 1
"""librdkafka takes no longer `message.timeout.ms`."""
CONNECTIONS = 3
"""The number of parallel producers: a broker answers the requests of one connection one after the other."""


def preload(
    bootstrap: Sequence[str],
    fills: Sequence[Fill],
    *,
    acks: Literal["all", "1"] = "all",
    timeout_s: float = 300.0,
    batch_bytes: int = BATCH_BYTES,
) -> None:
    """Write every record of `fills`, acknowledged by all in-sync replicas, or with `acks` 1 by the leader alone.

    With followers `acks` 1 is several times faster: with all, each batch waits for the followers' next fetch. With
    `acks` 1 the caller must wait until the high watermarks reach the ends.

    Raise `TestbedError` when a record was not acknowledged, naming topic, partition and the broker's error.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Any) -> None:
        if error is not None and len(failures) < 5:
            failures.append(f"{message.topic()}-{message.partition()}: {error.str()}")

    deadline = time.monotonic() + timeout_s
    partitions = sum(len(fill.partitions) for fill in fills)
    _wait_led(bootstrap, fills, min(timeout_s, LED_S + partitions * LOG_S))
    producers = [_producer(bootstrap, acks, timeout_s, batch_bytes) for _ in range(CONNECTIONS)]
    for _chunk in _chunks(producers, fills, delivered):
        for producer in producers:
            producer.poll(0)
        if failures or time.monotonic() > deadline:
            break
    left = sum(producer.flush(max(0.1, deadline - time.monotonic())) for producer in producers)
    if failures:
        raise TestbedError("preload: records were not acknowledged: " + "; ".join(failures))
    if left:
        raise TestbedError(f"preload: {left} records were not acknowledged within {timeout_s:.0f} s")


def _chunks(producers: Sequence[Producer], fills: Sequence[Fill], delivered: Callable[..., None]) -> Iterator[None]:
    """Hand over the records, about a batch's worth for each partition of a topic at a time."""
    for fill in fills:
        payloads = fill.recipe.payloads()
        # One batch's worth per partition in turn: this gives larger batches than record by record.
        chunk = max(1, 262144 // fill.recipe.record_bytes)
        for begin in range(0, fill.records_per_partition, chunk):
            for partition in fill.partitions:
                producer = producers[partition % CONNECTIONS]
                for place in range(begin, min(begin + chunk, fill.records_per_partition)):
                    _produce(producer, fill, payloads, partition, place, delivered)
            yield


def _producer(bootstrap: Sequence[str], acks: str, timeout_s: float, batch_bytes: int) -> Producer:
    return Producer(
        {
            "bootstrap.servers": ",".join(bootstrap),
            "acks": acks,
            # Faster than idempotent. The client never retries: a record without an acknowledgement at once is an error.
            "enable.idempotence": False,
            "retries": 0,
            "compression.type": "none",
            "linger.ms": 20,
            "batch.size": batch_bytes,
            "queue.buffering.max.kbytes": 131072 // CONNECTIONS,
            "message.timeout.ms": min(round(timeout_s * 1000), MOST_TIMEOUT_MS),
            # Experiments stop brokers on purpose, so the client logs nothing; an undelivered record raises an error.
            "log_level": 2,
        }
    )


def _wait_led(bootstrap: Sequence[str], fills: Sequence[Fill], timeout_s: float) -> None:
    """Wait until every partition's leader answers as its leader.

    A broker that does not yet know that it leads a new partition refuses a batch. The client sends the batch again,
    whatever its `retries` are, and the next batch overtakes it. On a busy machine the first three records of a
    partition came after later ones.
    """
    pending = [TopicPartition(fill.topic, partition) for fill in fills for partition in fill.partitions]
    if not pending:
        return
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": ",".join(bootstrap), "log_level": 2}

    def refusal() -> str:
        """Return why a partition without its leader's answer has none; empty if all leaders answer."""
        # A new client each time: a client caches for half a minute that a broker did not know a topic. It asks each
        # leader once for all its partitions: one request for each of 10,000 took more than half a minute.
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        admin = AdminClient(settings)  # kept until all have answered: without it no answer comes
        asked = admin.list_offsets(dict.fromkeys(pending, latest), request_timeout=timeout_s)
        refused = {}
        for each, answer in asked.items():
            try:
                answer.result(timeout_s)
            except KafkaException as error:
                refused[each] = error.args[0].str()
            except TimeoutError:
                refused[each] = f"no answer within {timeout_s:g} s"
        pending[:] = refused
        return next((f"{each.topic}-{each.partition}: {why}" for each, why in refused.items()), "")

    wait_for(refusal, lambda why: not why, timeout_s, LOOK_S, "preload: every partition's leader to answer")


def _produce(
    producer: Any, fill: Fill, payloads: Payloads, partition: int, place: int, delivered: Callable[..., None]
) -> None:
    # Negative: a consumer of the load must not take the record's age for a latency.
    time_us = -time.time_ns() // 1000
    value = payloads.record(partition, place, fill.producer, time_us)
    while True:
        try:
            producer.produce(
                fill.topic,
                value,
                PRELOADED.key(partition, place),
                partition,
                delivered,
                timestamp=timestamp_ms(time_us),
                headers=PRELOADED.headers(place),
            )
        except BufferError:
            producer.poll(0.1)  # the queue is full: serve deliveries until it has capacity
        else:
            return


READERS = 2
"""Consumers that share the partitions: two read logs in an object store twice as fast as one."""
AT_ONCE_BYTES = 2 << 20
"""The bytes that a consumer requests at once. A broker discards a read from an object store after half a second
(`remote.fetch.max.wait.ms`), and the consumer asks again: 20 MiB over 200 Mbit/s never arrived."""
PATIENCE_S = 60.0
ANSWER_S = 10.0
"""The longest time in which the leaders of all partitions answer one request each."""
MEETINGS = 3
"""A client meets a refused batch twice if it is the last one of a response, and again and again if nothing follows."""
_AT_ONCE = 2000
_LOOK_S = 0.2
_SETTINGS: Mapping[str, str | int | bool] = {
    "group.id": "testbed-audit",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.message.max.bytes": AT_ONCE_BYTES // 2,
    "fetch.max.bytes": AT_ONCE_BYTES,
    "queued.max.messages.kbytes": 65536,
    "check.crcs": True,
    "log_level": 3,
}


def audit(
    bootstrap: Sequence[str],
    fills: Sequence[Fill],
    written: Iterable[WrittenRecords] = (),
    *,
    client: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
    batches: ReadBatches | None = None,
    by_time: bool = False,
    remote: bool = False,
) -> Audit:
    """Read every partition of `fills` and of a load (`WorkloadResult.written`), and return the account of every record.

    `batches` reads the log of a partition with records twice or late. The account then says whether the client sent
    them again. `by_time` asks the leader of each partition for the offsets of three timestamps. Call it once all
    producers have stopped. Only committed records count. `client` has librdkafka's settings for reaching the cluster.
    When no remaining record arrives for `patience_s` seconds, the leaders are asked for their ends. What they have
    beyond is withheld, and the account says so. Raise `TestbedError` when a leader does not answer, or has no more, and
    when no offset arrives: their state is unknown. So it is with `remote` storage: an object store may give nothing.
    """
    expected = [*(each for fill in fills for each in fill.written()), *written]
    reach = {"bootstrap.servers": ",".join(bootstrap), **(client or {})}
    ledger, lookups = Ledger(expected, partial(_broker_times, reach)), time_lookups(expected) if by_time else {}
    heard = time.monotonic()
    try:
        with _Readers({**_SETTINGS, **reach}, ledger, lookups) as readers:
            while readers.left:
                read, ended = readers.read()
                if read or ended:
                    heard = time.monotonic()
                elif time.monotonic() - heard > patience_s:
                    readers.give_up(f"nothing came for {patience_s:.0f} s", remote=remote)
                    heard = time.monotonic()  # if any are left, something came
            readers.look_up(patience_s)
    except KafkaException as error:
        raise TestbedError(f"audit: {error}") from error
    return ledger.result() if batches is None else _account(ledger, batches)


def _broker_times(reach: Mapping[str, str], topic: str) -> bool:
    """Return whether a topic's configuration, or the brokers' default, is LogAppendTime."""
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (answer,) = AdminClient(dict(reach)).describe_configs([asked], request_timeout=CONFIG_S).values()
    return str(answer.result()[TIMES_OF].value) == "LogAppendTime"


def _account(ledger: Ledger, batches: ReadBatches) -> Audit:
    """Return the ledger's account; a log that cannot be read explains nothing, and the account says so."""
    again, unread = set(), []
    for (topic, partition), repeats in ledger.repeats().items():
        try:
            if sent_again(batches(topic, partition), repeats):
                again.add((topic, partition))
        except TestbedError as error:
            unread.append(f"{topic}-{partition}: its log could not be read: {error}")
    found = ledger.result(again)
    return replace(found, complaints=(*found.complaints, *unread))


class _Readers:
    """The consumers that read a ledger's partitions, each its share."""

    def __init__(
        self, settings: Mapping[str, str | int | bool], ledger: Ledger, lookups: Mapping[Where, Sequence[TimeLookup]]
    ) -> None:
        self._ledger, self._lookups = ledger, lookups
        partitions = ledger.partitions()
        self.left = set(partitions)
        self._broken: dict[Where, list[int]] = {}
        """The offsets of the batches that the client refused, as often as it met them."""
        self._withheld: set[Where] = set()
        shares = [partitions[number::READERS] for number in range(READERS)]
        self._shares = [(Consumer(dict(settings)), set(share)) for share in shares if share]

    def __enter__(self) -> Self:
        for consumer, share in self._shares:
            # "earliest" and not 0: the account names records that were deleted from a log's beginning as lost.
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in sorted(share)])
        return self

    def __exit__(self, *_error: object) -> None:
        for consumer, _share in self._shares:
            consumer.close()

    def read(self) -> tuple[int, int]:
        """Read available records; return how many arrived, and how many partitions have reached their end."""
        records = ends = 0
        busy = [(consumer, share) for consumer, share in self._shares if share & self.left]
        for consumer, _share in busy:
            found: dict[Where, list[Any]] = {}
            for message in consumer.consume(_AT_ONCE, timeout=_LOOK_S / len(busy)):
                error = message.error()
                where = (str(message.topic()), int(message.partition() or 0))
                if error is None:
                    records += 1
                    found.setdefault(where, []).append(message)
                elif error.code() == KafkaError._BAD_MSG:
                    ends += self._is_end(where, int(message.offset() or 0), error.str())
                elif error.code() == KafkaError._PARTITION_EOF:
                    ends += where in self.left
                    self.left.discard(where)
                elif not error.retriable():
                    raise TestbedError(f"audit: {where[0]}-{where[1]}: {error.str()}")
            for (topic, partition), messages in found.items():
                read = read_records(messages)
                self._ledger.add(topic, partition, read)
                for lookup in self._lookups.get((topic, partition), ()):
                    lookup.add(read.offsets, read.times_ms)
        return records, ends

    def give_up(self, why: str, *, remote: bool) -> None:
        """Leave the partitions that are left, and add to the account what their leaders have of them.

        A leader answers the requests of a connection in order, so what was on its way comes before its answer. When
        something comes all the same, nothing is given up. Raise `TestbedError` when a leader does not answer, or has no
        more than was read, and with `remote` storage.
        """
        left = [(consumer, where) for consumer, share in self._shares for where in sorted(share & self.left)]
        ends: dict[Where, int | None] = {}
        for consumer, where in left:
            ends[where] = None if remote else self._end(consumer, where)
            if ends[where] is None:
                break  # each leader without an answer takes as long
        again = time.monotonic() + AGAIN_S
        while time.monotonic() < again:
            if any(self.read()):
                return
        read = {where: self._ledger.read_up_to(*where) for where in ends}
        unknown = [where for where, end in ends.items() if end is None or end <= read[where]]
        if unknown:
            raise TestbedError(
                f"audit: {counted(len(self.left), 'partition', 'was')} not read to the end: {why}, among them "
                f"{'-'.join(map(str, min(unknown)))}"
            )
        for where, end in ends.items():
            self._ledger.add_withheld(*where, f"{why}, and the leader's log ends at {end}")
        self._withheld |= ends.keys()
        self.left -= ends.keys()

    def _end(self, consumer: Consumer, where: Where) -> int | None:
        """Return the end of a partition that its leader says; None without an answer."""
        try:
            answer = consumer.get_watermark_offsets(TopicPartition(*where), timeout=ANSWER_S)
        except KafkaException:
            return None
        return None if answer is None else int(answer[1])

    def look_up(self, patience_s: float) -> None:
        """Ask the leaders for the offsets of timestamps, and add the answers to the account."""
        for consumer, share in self._shares:
            # A leader that cannot read a batch cannot look into it either. What was withheld has no right answer.
            able = {
                where: self._lookups[where]
                for where in sorted((share - self._broken.keys() - self._withheld) & self._lookups.keys())
            }
            for asked in rounds(able):
                ask = partial(self._ask, consumer, asked)
                wait_for(ask, lambda why: not why, patience_s, _LOOK_S, "audit: the offsets of timestamps")

    def _ask(self, consumer: Consumer, asked: dict[Where, RightAnswer]) -> str:
        """Ask once for the offsets that have no answer yet; return why one of them has none; empty if all have."""
        if not asked:
            return ""
        try:
            wanted = [TopicPartition(*where, time_ms) for where, (time_ms, _offset) in asked.items()]
            answers = consumer.offsets_for_times(wanted, timeout=ANSWER_S)
        except KafkaException as error:
            return str(error.args[0].str())
        refused = ""
        for answer in answers:
            where = answer.topic, answer.partition
            if answer.error is not None:
                refused = f"{where[0]}-{where[1]}: {answer.error.str()}"
                continue
            self._ledger.add_lookup(*where, *asked.pop(where), answer.offset)
        return refused

    def _is_end(self, where: Where, offset: int, why: str) -> bool:
        """Add a batch that the client refused; return whether nothing of its partition can be read after it.

        The client goes on to the next batch, if there is one. After the last batch it meets the same batch again.
        """
        met = self._broken.setdefault(where, [])
        if offset not in met:
            self._ledger.add_unreadable(*where, offset, why)
        met.append(offset)
        if where not in self.left or met.count(offset) < MEETINGS:
            return False
        self.left.discard(where)
        return True
