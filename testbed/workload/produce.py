"""A producer of a load, as a process, and the outcome of each record that it has sent."""

import gc
import logging
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from results.contract.document import decode
from testbed.workload.child import Orders, Reporter, now_us, run
from testbed.workload.records import Payloads, Recipe, identity, timestamp_ms
from testbed.workload.spans import spans
from testbed.workload.spec import ProducerSpec, Schedule, schedule


@dataclass(slots=True)
class Outbox:
    """The places of every partition. Each place gets its outcome once; answers may come in any order."""

    sent: dict[int, int]
    """Partition → the next place."""
    settled: dict[int, int] = field(default_factory=dict)
    """Partition → the place below which every place has an outcome."""
    acked: int = 0
    refused: int = 0
    aborted: int = 0
    in_doubt: int = 0
    _early: dict[int, set[int]] = field(default_factory=dict)
    _acked_at: dict[int, list[list[int]]] = field(default_factory=dict)
    _refused: list[tuple[int, int]] = field(default_factory=list)
    _doubtful: list[tuple[int, int]] = field(default_factory=list)
    _changed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.settled = dict.fromkeys(self.sent, 0)

    def ack(self, partition: int, place: int, offset: int | None = None) -> None:
        """Record that a record was acknowledged, at an offset if it is known."""
        self.acked += 1
        # After a repeated request a broker may not know the offsets of its batch any more. librdkafka then counts from
        # -1 on. No true offset is lower than the place, unless records before it were refused: those go unchecked.
        if offset is not None and offset >= place:
            runs = self._acked_at.setdefault(partition, [])
            if runs and runs[-1][1:] == [place, offset - place]:
                runs[-1][1] += 1
            else:
                runs.append([place, place + 1, offset - place])
        self._settle(partition, place)

    def refuse(self, partition: int, place: int) -> None:
        """Record that a record is certainly not in the log."""
        self.refused += 1
        self._refused.append((partition, place))
        self._settle(partition, place)

    def abort(self, partition: int, place: int) -> None:
        """Record that a record's transaction was aborted on purpose: no reader may get it."""
        self.aborted += 1
        self._refused.append((partition, place))
        self._settle(partition, place)

    def doubt(self, partition: int, place: int) -> None:
        """Record that it is unknown whether a record is in the log."""
        self.in_doubt += 1
        self._doubtful.append((partition, place))
        self._settle(partition, place)

    def _settle(self, partition: int, place: int) -> None:
        expected = self.settled[partition]
        self._changed.add(partition)
        if place != expected:
            self._early.setdefault(partition, set()).add(place)
            return
        expected += 1
        early = self._early.get(partition)
        while early and expected in early:
            early.remove(expected)
            expected += 1
        self.settled[partition] = expected

    @property
    def waiting(self) -> int:
        """Return the number of records without an outcome."""
        return sum(self.sent.values()) - self.acked - self.refused - self.aborted - self.in_doubt

    def doubt_the_rest(self) -> None:
        """Record all records without an outcome as in doubt."""
        for partition, sent in self.sent.items():
            early = self._early.get(partition, set())
            for place in [p for p in range(self.settled[partition], sent) if p not in early]:
                self.doubt(partition, place)

    def news(self) -> dict[str, Any]:
        """Return the changes since the last call, JSON-able; the parent adds them up with `ProcessReports`."""
        found = {
            "settled": [(partition, self.settled[partition]) for partition in sorted(self._changed)],
            "refused": _by_partition(self._refused),
            "doubtful": _by_partition(self._doubtful),
            "acked_at": [(partition, *run) for partition, runs in self._acked_at.items() for run in runs],
        }
        self._changed.clear()
        self._refused.clear()
        self._doubtful.clear()
        self._acked_at.clear()
        return found


def _by_partition(places: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    of: dict[int, list[int]] = {}
    for partition, place in places:
        of.setdefault(partition, []).append(place)
    return [(partition, begin, end) for partition, found in of.items() for begin, end in spans(found)]


AT_ONCE = 128
"""The number of records that the producer hands over before it serves answers."""
READY_S = 45.0
_LINGER_AFTER_S = 5.0
_REASONS, _REASON = 5, 300
"""The most new epochs of which a report has the reason, and the most characters of each."""

REFUSALS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
    }
)
"""The broker's answers that prove that it did not write the record. Any other failure may follow a write."""


class EpochLog(logging.Handler):
    """Collects why librdkafka began new producer epochs. Its errors go to stderr; the other lines are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take one line of librdkafka's log."""
        text = record.getMessage()
        if "DRAIN" in text and "epoch bump" in text:
            if len(self.reasons) < _REASONS:
                self.reasons.append(text[-_REASON:])
        elif record.levelno >= logging.ERROR:
            print(text, file=sys.stderr)


class _Producing:
    def __init__(self, spec: ProducerSpec, orders: Orders, reporter: Reporter) -> None:
        self.spec, self.orders, self.reporter = spec, orders, reporter
        self.envelope = spec.envelope
        self.schedule: Schedule = schedule(spec, orders.seed)
        self.payloads = {
            size: Payloads(Recipe(size, orders.seed, spec.redundancy)) for size in set(self.schedule.sizes)
        }
        self.outbox = Outbox(dict.fromkeys(spec.partitions, 0))
        self.times: list[int] = []
        self.uncommitted: list[tuple[int, int, int, int | None]] = []
        self.number = self.warm = self.transactions = 0
        self.late_us = 0
        self.error = ""
        self.fatal = False
        self.next_report_us = self.next_commit_us = 0
        self.epochs = EpochLog()
        logger = logging.Logger(spec.name)
        logger.addHandler(self.epochs)
        clients = [Producer(_settings(spec, orders), logger=logger) for _ in range(spec.connections)]
        self.client, *self.others = clients
        self.client_of = {partition: clients[at % len(clients)] for at, partition in enumerate(spec.partitions)}

    # Sending.

    def warm_up(self) -> None:
        """Write one record to each partition and wait for it: setting up connections must not count as latency."""
        if self.spec.transaction_s is not None:
            self.client.init_transactions(READY_S)
            self.client.begin_transaction()
        for partition in self.spec.partitions:
            self.send(partition, self.schedule.sizes[0], -now_us())
            self.warm += 1
        deadline = time.monotonic() + READY_S
        while self.unheard() and time.monotonic() < deadline and not self.orders.stopping.is_set():
            self.poll(0.05)
        if self.spec.transaction_s is not None:
            self.commit(begin=True)
        if self.outbox.acked < self.warm and not self.orders.stopping.is_set():
            raise RuntimeError(
                f"only {self.outbox.acked} of {self.warm} partitions acknowledged a record within {READY_S:g} s"
                + (f": {self.error}" if self.error else "")
            )

    def poll(self, wait_s: float) -> None:
        """Serve the delivery reports of all clients; wait for those of the first one at most `wait_s`."""
        for client in self.others:
            client.poll(0)
        self.client.poll(min(wait_s, 0.01) if self.others else wait_s)

    def unheard(self) -> int:
        return self.outbox.waiting - len(self.uncommitted)

    def send(self, partition: int, size: int, time_us: int) -> bool:
        """Hand a record over to the client; return False, and change nothing, when the buffer is full."""
        outbox = self.outbox
        place = outbox.sent[partition]
        value = self.payloads[size].record(partition, place, self.orders.producer, time_us)
        try:
            self.client_of[partition].produce(
                self.spec.topic,
                value,
                self.envelope.key(partition, place),
                partition,
                self.delivered,
                timestamp=timestamp_ms(time_us),
                headers=self.envelope.headers(place),
            )
        except BufferError:
            return False
        except KafkaException as error:
            # The client itself refused it: it was never sent.
            self.heard_error(error.args[0])
            outbox.sent[partition] = place + 1
            outbox.refuse(partition, place)
            return True
        outbox.sent[partition] = place + 1
        return True

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        partition, _producer, place, time_us = identity(message.value())
        if self.spec.transaction_s is not None:
            # Also for a failed record: its transaction will be aborted.
            self.uncommitted.append((partition, place, time_us, message.offset() if error is None else None))
            if error is not None:
                self.heard_error(error)
            return
        if time_us > 0:
            self.times.append(time_us)
            self.times.append(now_us())
        if error is None:
            self.outbox.ack(partition, place, message.offset())
            return
        self.heard_error(error)
        if error.code() in REFUSALS:
            self.outbox.refuse(partition, place)
        else:
            self.outbox.doubt(partition, place)

    def heard_error(self, error: KafkaError) -> None:
        """Keep the first error; a fatal error of this producer ends the load."""
        self.error = self.error or f"{error.name()}: {error.str()}"
        if error.fatal():
            self.fatal = True
            self.orders.stopping.set()

    # Transactions.

    def commit(self, *, begin: bool) -> None:
        """End the transaction: its records are then acknowledged, or refused if it had to be aborted.

        The last one of `abort_every` transactions is aborted on purpose.
        """
        not_committed = None
        deadline = time.monotonic() + self.spec.give_up_s
        self.transactions += 1
        try:
            self.client.flush(self.spec.give_up_s)
            if self.spec.abort_every and self.transactions % self.spec.abort_every == 0:
                self.ended(self.client.abort_transaction, max(deadline, time.monotonic() + _LINGER_AFTER_S))
                not_committed = self.outbox.abort
            else:
                self.ended(self.client.commit_transaction, deadline)
        except KafkaException as error:
            failure = error.args[0]
            self.heard_error(failure)
            not_committed = self.outbox.doubt
            if failure.txn_requires_abort():
                self.client.abort_transaction(max(_LINGER_AFTER_S, deadline - time.monotonic()))
                not_committed = self.outbox.refuse
        now = now_us()
        for partition, place, time_us, offset in self.uncommitted:
            if not_committed is None:
                self.outbox.ack(partition, place, offset)
            else:
                not_committed(partition, place)
            if time_us > 0:
                self.times += (time_us, now)
        self.uncommitted.clear()
        if begin and not self.orders.stopping.is_set():
            self.client.begin_transaction()

    def ended(self, end: Callable[[float], None], deadline: float) -> None:
        """Commit or abort the transaction, and retry until the deadline as long as the client permits it."""
        while True:
            try:
                end(max(0.1, deadline - time.monotonic()))
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    # The load.

    def produce(self, began_us: int) -> int:
        """Produce from `began_us` until an order stops it; return the number of records due by then."""
        plan, stopping = self.schedule, self.orders.stopping
        turns, sizes = cycle(plan.partitions), cycle(plan.sizes)
        left, partition, size = 0, 0, next(sizes)
        while not stopping.is_set():
            now = now_us()
            due, number = plan.due(now, began_us), self.number
            if number < due:
                self.late_us = max(self.late_us, now - began_us - round(number * plan.interval_us))
            for each in range(number, min(due, number + AT_ONCE)):
                if not left:
                    left, partition = plan.turn, next(turns)
                if not self.send(partition, size, began_us + round(each * plan.interval_us)):
                    self.poll(0.01)
                    break
                left -= 1
                size = next(sizes)
                self.number = each + 1
            self.poll(0)
            now = now_us()
            if self.spec.transaction_s is not None and now >= self.next_commit_us:
                self.next_commit_us = now + int(self.spec.transaction_s * 1e6)
                self.commit(begin=True)
            if now >= self.next_report_us:
                self.report(due)
            wait_us = began_us + round(self.number * plan.interval_us) - now
            if wait_us > 0:
                # A tick is at least 1 ms: waking up for each record would cost more than sending it.
                self.poll(min(0.05, max(0.001, wait_us / 1e6)))
        return plan.due(now_us(), began_us)

    def finish(self, due: int) -> None:
        """Wait until every sent record is acknowledged or given up."""
        waiting = self.outbox.waiting
        # The parent waits for so long, and a little longer: a commit is part of it.
        deadline = time.monotonic() + self.spec.give_up_s + _LINGER_AFTER_S
        if self.spec.transaction_s is not None and self.outbox.waiting:
            self.commit(begin=False)
        while self.outbox.waiting and time.monotonic() < deadline:
            self.poll(0.05)
            if now_us() >= self.next_report_us:
                self.report(due)
        self.outbox.doubt_the_rest()
        self.report(due, final=True, sent_places=sorted(self.outbox.sent.items()), waiting_at_stop=waiting)

    def report(self, due: int, **more: Any) -> None:
        """Report the last second's figures. Counts are totals; latencies and outcomes are those of the second."""
        now = now_us()
        self.next_report_us = (now // 1_000_000 + 1) * 1_000_000
        times, self.times = self.times, []
        self.reporter.report(
            {
                "t": now,
                "due": due + self.warm,
                "sent": self.number + self.warm,
                "acked": self.outbox.acked,
                "failed": self.outbox.refused,
                "aborted": self.outbox.aborted,
                "in_doubt": self.outbox.in_doubt,
                "late_s": round(self.late_us / 1e6, 6),
                "cpu": self.reporter.cpu_cores(),
                "error": self.error,
                "fatal": self.fatal,
                "new_epochs": self.epochs.reasons,
                **self.outbox.news(),
                **more,
            },
            times,
        )
        self.late_us = 0


def _settings(spec: ProducerSpec, orders: Orders) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": orders.bootstrap,
        "client.id": spec.name,
        "acks": "all",
        "enable.idempotence": spec.idempotence,
        "compression.type": spec.compression,
        "linger.ms": spec.linger_ms,
        "batch.size": spec.batch_bytes,
        "message.timeout.ms": int(spec.give_up_s * 1000),
        "queue.buffering.max.kbytes": max(1, spec.buffer_bytes >> 10),
        "queue.buffering.max.messages": max(1000, int(spec.buffer_bytes / spec.mean_bytes)),
        # As Java's clients; librdkafka's default of 10 s would leave a restarted broker without load for that long.
        "reconnect.backoff.max.ms": 1000,
        "socket.nagle.disable": True,
        # Only here librdkafka says that, and why, it began a new producer epoch. `EpochLog` drops the rest.
        "debug": "eos",
        "log_level": 7,
        **spec.client,
    }
    if spec.transaction_s is not None:
        settings["transactional.id"] = transactional_id(spec.name, orders.seed)
        settings["transaction.timeout.ms"] = int(spec.give_up_s * 1000)
    return settings


def transactional_id(name: str, seed: int) -> str:
    """Return the transactional id of a producer; a client with this id can end a transaction of a dead producer."""
    return f"testbed-{name}-{seed}"


def main(orders: Orders, reporter: Reporter) -> None:
    """Run the producer; see `testbed.workload.child.run`."""
    # A garbage collection would be a pause that counts as latency; this code creates no cycles.
    gc.disable()
    producing = _Producing(decode(ProducerSpec, orders.spec, "the producer's specification"), orders, reporter)
    producing.warm_up()
    reporter.report({"ready": True, **producing.outbox.news()})
    orders.going.wait()
    reporter.cpu_cores()
    due = producing.produce(orders.began_us) if orders.began_us else 0
    producing.finish(due)


if __name__ == "__main__":
    run(main)
