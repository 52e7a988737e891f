"""The parts of a client's messages, as the audit and the load's consumers take them."""

from collections.abc import Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from testbed.workload.records import BROKER_TIME, ReadRecords


def read_records(messages: Sequence[Any]) -> ReadRecords:
    """Return the records of a client's messages, none of which is an error."""
    return ReadRecords(
        [message.offset() for message in messages],
        [message.value() for message in messages],
        [message.key() for message in messages],
        [message.headers() for message in messages],
        [
            BROKER_TIME if kind == TIMESTAMP_LOG_APPEND_TIME else time_ms
            for kind, time_ms in [message.timestamp() for message in messages]
        ],
    )
