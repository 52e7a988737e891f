"""A small client that runs with the load: it writes to every partition some twenty times a second, and reads back.

It records the acknowledgement and the fetch of each record. The leader epoch shows which broker wrote the record. Its
records have the load's format, so the audit accounts for them too.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from operator import not_
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition

from testbed.handover.steps import ProbeAnswers
from testbed.kafka.types import TopicPartition
from testbed.probes.recorder import now_us
from testbed.wait import wait_for
from testbed.workload.connections import connections
from testbed.workload.produce import REFUSALS, Outbox
from testbed.workload.records import Recipe, WrittenRecords, identity

RECORD_BYTES = 128
INTERVAL_S = 0.05
MOST_PER_S = 1000.0
"""The most records per second of the whole probe: with more partitions each gets fewer."""
NAME = "handover-probe"
FIRST_PRODUCER = 900
"""The probe's first producer number in the audit; each topic takes the next one."""
READY_S, GIVE_UP_S = 45.0, 60.0
_CLIENT: Mapping[str, Any] = {
    # The client looks for a new leader at once: the probe measures the brokers, not the client's backoff.
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "socket.nagle.disable": True,
    "log_level": 2,
}


def interval_s(partitions: int) -> float:
    """Return the seconds between two records of a partition, for this number of partitions. Pure."""
    return max(INTERVAL_S, partitions / MOST_PER_S)


class Probe:
    """A client that writes and reads from `start` to `stop`. `probed` and `written` are complete after that."""

    def __init__(self, bootstrap: Sequence[str], partitions: Sequence[TopicPartition], seed: int) -> None:
        self._bootstrap = ",".join(bootstrap)
        self._tps = sorted(partitions)
        self._topics = sorted({tp.topic for tp in self._tps})
        self._payloads = Recipe(RECORD_BYTES, seed).payloads()
        mine = {topic: [tp.partition for tp in self._tps if tp.topic == topic] for topic in self._topics}
        self._outboxes = {topic: Outbox(dict.fromkeys(mine[topic], 0)) for topic in self._topics}
        self._acked: dict[TopicPartition, list[tuple[int | None, int, int]]] = {tp: [] for tp in self._tps}
        """Offset (None: the broker did not say), instant and place of every acknowledgement."""
        self._offsets: dict[TopicPartition, dict[int, int]] = {tp: {} for tp in self._tps}
        """Place → offset of the probe's fetched records."""
        self._received: dict[TopicPartition, dict[int, tuple[int, int, int]]] = {tp: {} for tp in self._tps}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.error = ""
        """The first error, if any; a later attempt may still have succeeded."""
        self._threads = [
            threading.Thread(target=target, name=f"{NAME} {name}", daemon=True)
            for name, target in (("reads", self._read), ("writes", self._write))
        ]

    def start(self) -> None:
        """Start; return once each partition has acknowledged a record and the probe has read one.

        Raise `WaitTimeout` when this takes longer than `READY_S` seconds.
        """
        for thread in self._threads:
            thread.start()
        try:
            wait_for(self._waiting, not_, READY_S, 0.05, "the probe to write and read everywhere")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop, after waiting for outstanding records."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(timeout=GIVE_UP_S + 10.0)

    def probed(self) -> dict[TopicPartition, ProbeAnswers]:
        """Return the answers of each partition."""
        with self._lock:
            return {
                tp: ProbeAnswers(
                    tuple(
                        (self._offsets[tp].get(place) if offset is None else offset, us)
                        for offset, us, place in sorted(self._acked[tp], key=lambda each: each[1])
                    ),
                    tuple(self._received[tp].values()),
                )
                for tp in self._tps
            }

    def written(self) -> tuple[WrittenRecords, ...]:
        """Return the probe's records that the audit should find."""
        with self._lock:
            found = []
            for number, topic in enumerate(self._topics):
                outbox = self._outboxes[topic]
                news = outbox.news()
                for partition, sent in outbox.sent.items():
                    refused, doubtful = (
                        tuple((begin, end) for p, begin, end in news[kind] if p == partition)
                        for kind in ("refused", "doubtful")
                    )
                    where = FIRST_PRODUCER + number, NAME, topic, partition
                    found.append(WrittenRecords(*where, outbox.settled[partition], sent, refused, doubtful))
            return tuple(found)

    def _waiting(self) -> list[str]:
        with self._lock:
            return [f"{tp}{f': {self.error}' if self.error else ''}" for tp in self._tps if not self._received[tp]]

    def _write(self) -> None:
        settings = {
            **_CLIENT,
            "bootstrap.servers": self._bootstrap,
            "client.id": NAME,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": int(GIVE_UP_S * 1000),
        }
        # On one connection a record waits for the answers to those of the other partitions.
        clients = [Producer(settings) for _ in range(connections(len(self._tps)))]
        try:
            self._send_all(clients, interval_s(len(self._tps)) / len(self._tps))
        except KafkaException as error:
            # A fatal error of an idempotent producer: it takes no further record.
            self._note(error.args[0])
        deadline = time.monotonic() + GIVE_UP_S
        for client in clients:
            client.flush(max(0.1, deadline - time.monotonic()))
        with self._lock:
            for outbox in self._outboxes.values():
                outbox.doubt_the_rest()

    def _send_all(self, clients: Sequence[Any], pause_s: float) -> None:
        """Send a record to each partition in turn until the probe stops. Raise `KafkaException` for a fatal error."""
        while not self._stopping.is_set():
            for turn, tp in enumerate(self._tps):
                client = clients[turn % len(clients)]
                self._send(client, tp)
                client.poll(0)
                if self._stopping.wait(pause_s):
                    break

    def _note(self, error: KafkaError) -> None:
        self.error = self.error or f"{error.name()}: {error.str()}"

    def _send(self, client: Any, tp: TopicPartition) -> None:
        outbox = self._outboxes[tp.topic]
        with self._lock:
            place = outbox.sent[tp.partition]
        number = FIRST_PRODUCER + self._topics.index(tp.topic)
        value = self._payloads.record(tp.partition, place, number, now_us())
        try:
            client.produce(tp.topic, value, None, tp.partition, self._delivered)
        except BufferError:
            return  # nothing was sent; the next turn tries again
        with self._lock:
            outbox.sent[tp.partition] = place + 1

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        at, tp = now_us(), TopicPartition(message.topic(), message.partition())
        place = identity(message.value())[2]
        with self._lock:
            outbox = self._outboxes[tp.topic]
            if error is None:
                outbox.ack(tp.partition, place)
                offset = message.offset()
                self._acked[tp].append((None if offset is None or offset < 0 else offset, at, place))
                return
            self._note(error)
            if error.code() in REFUSALS:
                outbox.refuse(tp.partition, place)
            else:
                outbox.doubt(tp.partition, place)

    def _read(self) -> None:
        client = Consumer(
            {
                **_CLIENT,
                "bootstrap.servers": self._bootstrap,
                "client.id": NAME,
                "group.id": NAME,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 20,
            }
        )
        client.assign([ClientPartition(tp.topic, tp.partition, OFFSET_END) for tp in self._tps])
        try:
            while not self._stopping.is_set():
                for message in client.consume(500, 0.1):
                    self._took(message)
        except KafkaException as error:
            self._note(error.args[0])
        finally:
            client.close()

    def _took(self, message: Any) -> None:
        at = now_us()
        if message.error() is not None:
            self._note(message.error())
            return
        # Other clients may write to the same partition: any record's epoch is that of the broker that wrote it.
        said = message.leader_epoch()
        epoch = -1 if said is None else said
        tp = TopicPartition(message.topic(), message.partition())
        value = message.value() or b""
        producer, place = identity(value)[1:3] if len(value) == RECORD_BYTES else (0, 0)
        with self._lock:
            self._received[tp].setdefault(epoch, (message.offset(), epoch, at))
            if producer == FIRST_PRODUCER + self._topics.index(tp.topic):
                self._offsets[tp][place] = message.offset()
