"""Reading topics back, from the beginning to the end of every partition."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from testbed.errors import TestbedError
from testbed.workload.audit import Audit, Ledger
from testbed.workload.fill import Fill
from testbed.workload.written import Written

Progress = Callable[[int, int], None]
"""Records read, records expected."""

READERS = 2
"""Consumers that share the partitions: of logs in an object store two read twice as fast as one."""
AT_ONCE_BYTES = 2 << 20
"""Asked for by a consumer at once. A broker that has not read it from an object store within half a second
(`remote.fetch.max.wait.ms`) throws it away, and is asked again: 20 MiB over 200 Mbit/s never came."""
PATIENCE_S = 60.0
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
Where = tuple[str, int]


def audit(
    bootstrap: Sequence[str],
    fills: Sequence[Fill],
    written: Iterable[Written] = (),
    *,
    client: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
    progress: Progress | None = None,
) -> Audit:
    """Read every partition of `fills` and of a load (`WorkloadResult.written`) and account for every record.

    To be called when nobody writes any more. Only committed records count. `client` has librdkafka's settings for
    reaching the cluster. Raises `TestbedError` when nothing is read of what is left for `patience_s` seconds: nothing
    is known of its records then.
    """
    everything = [*(each for fill in fills for each in fill.written()), *written]
    ledger = Ledger(everything)
    total, done = sum(each.acked for each in everything), 0
    heard = time.monotonic()
    try:
        with _Readers({"bootstrap.servers": ",".join(bootstrap), **_SETTINGS, **(client or {})}, ledger) as readers:
            while readers.left:
                read, ended = readers.read()
                done += read
                if read or ended:
                    heard = time.monotonic()
                elif time.monotonic() - heard > patience_s:
                    raise TestbedError(
                        f"audit: {len(readers.left)} partitions were not read to their end: nothing came for "
                        f"{patience_s:.0f} s, among them {'-'.join(map(str, min(readers.left)))}"
                    )
                if progress:
                    progress(done, total)
    except KafkaException as error:
        raise TestbedError(f"audit: {error}") from error
    return ledger.result()


class _Readers:
    """Consumers that read a ledger's partitions, each its share."""

    def __init__(self, settings: Mapping[str, str | int | bool], ledger: Ledger) -> None:
        self._ledger = ledger
        partitions = ledger.partitions()
        self.left = set(partitions)
        shares = [partitions[number::READERS] for number in range(READERS)]
        self._shares = [(Consumer(dict(settings)), set(share)) for share in shares if share]

    def __enter__(self) -> Self:
        for consumer, share in self._shares:
            # "earliest" and not 0: records that were deleted from a log's beginning are lost, and named as that.
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in sorted(share)])
        return self

    def __exit__(self, *_error: object) -> None:
        for consumer, _share in self._shares:
            consumer.close()

    def read(self) -> tuple[int, int]:
        """What has come: how many records, and the ends of how many partitions."""
        records = ends = 0
        busy = [(consumer, share) for consumer, share in self._shares if share & self.left]
        for consumer, _share in busy:
            values: dict[Where, list[bytes | None]] = {}
            for message in consumer.consume(_AT_ONCE, timeout=_LOOK_S / len(busy)):
                error = message.error()
                where = (str(message.topic()), int(message.partition() or 0))
                if error is None:
                    values.setdefault(where, []).append(message.value())
                    records += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    ends += where in self.left
                    self.left.discard(where)
                elif not error.retriable():
                    raise TestbedError(f"audit: {where[0]}-{where[1]}: {error.str()}")
            for (topic, partition), found in values.items():
                self._ledger.add(topic, partition, found)
        return records, ends
