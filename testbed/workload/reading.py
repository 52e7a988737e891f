"""Reading topics back, from the beginning to the end of every partition."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from testbed.errors import TestbedError
from testbed.workload.audit import Audit, Ledger
from testbed.workload.fill import Fill
from testbed.workload.written import Written

Progress = Callable[[int, int], None]
"""Records read, records expected."""

_AT_ONCE = 2000


def audit(
    bootstrap: Sequence[str],
    fills: Sequence[Fill],
    written: Iterable[Written] = (),
    *,
    client: Mapping[str, str] | None = None,
    timeout_s: float = 300.0,
    progress: Progress | None = None,
) -> Audit:
    """Read every partition of `fills` and of a load (`WorkloadResult.written`) and account for every record.

    To be called when nobody writes any more. Only committed records count. `client` has librdkafka's settings for
    reaching the cluster. Raises `TestbedError` when a partition cannot be read to its end in time: nothing is known
    of its records then.
    """
    everything = [*(each for fill in fills for each in fill.written()), *written]
    ledger = Ledger(everything)
    total, done = sum(each.acked for each in everything), 0
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(bootstrap),
            "group.id": "testbed-audit",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.message.max.bytes": 1048576,
            "queued.max.messages.kbytes": 65536,
            "check.crcs": True,
            "log_level": 3,
            **(client or {}),
        }
    )
    left = set(ledger.partitions())
    deadline = time.monotonic() + timeout_s
    try:
        # "earliest" and not 0: records that were deleted from a log's beginning are lost, and named as that.
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in sorted(left)])
        while left:
            if time.monotonic() > deadline:
                raise TestbedError(
                    f"audit: {len(left)} partitions were not read to their end within {timeout_s:.0f} s, "
                    f"among them {'-'.join(map(str, min(left)))}"
                )
            values: dict[tuple[str, int], list[bytes | None]] = {}
            for message in consumer.consume(_AT_ONCE, timeout=0.2):
                error = message.error()
                key = (str(message.topic()), int(message.partition() or 0))
                if error is None:
                    values.setdefault(key, []).append(message.value())
                    done += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(key)
                elif not error.retriable():
                    raise TestbedError(f"audit: {key[0]}-{key[1]}: {error.str()}")
            for (topic, partition), found in values.items():
                ledger.add(topic, partition, found)
            if progress:
                progress(done, total)
    except KafkaException as error:
        raise TestbedError(f"audit: {error}") from error
    finally:
        consumer.close()
    return ledger.result()
