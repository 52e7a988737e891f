"""How large each replica's log is and how fast it grows, over an Admin connection alone.

There are no broker metrics over the Admin API. But what is written to a partition is, byte for byte, what its
leader's log grows by: so a rate is several readings of the logs' sizes (DescribeLogDirs), some seconds apart.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.kafka.types import AdminApi, TopicPartition


class Sizes(NamedTuple):
    """The logs of some brokers: bytes of each replica, and when each broker said so (monotonic seconds)."""

    logs: Mapping[int, Mapping[TopicPartition, int]]
    at_s: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Pauses:
    """The clock, and how to wait; another one in tests."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def read_sizes(
    admin: AdminApi, brokers: Iterable[int], topics: Sequence[str] | None = None, clock: Pauses | None = None
) -> Sizes:
    """Ask each broker for its logs, of these topics or of all (None). Raises `KafkaError`."""
    now = (clock or Pauses()).clock
    logs: dict[int, dict[TopicPartition, int]] = {}
    at_s: dict[int, float] = {}
    for broker in brokers:
        begun_s = now()
        found = admin.log_dirs([broker], topics)[broker]
        logs[broker] = {tp: log.size_bytes for tp, log in found.items() if not log.is_future}
        at_s[broker] = (begun_s + now()) / 2
    return Sizes(logs, at_s)


def growth(readings: Sequence[Sizes], broker: int, tp: TopicPartition) -> float:
    """By how many bytes a second one replica's log grew.

    An interval in which it shrank, because old segments were deleted, does not count; with no other there is no
    rate to tell, and 0 is returned.
    """
    grown, spent_s = 0.0, 0.0
    for before, after in itertools.pairwise(readings):
        if tp not in before.logs.get(broker, {}) or tp not in after.logs.get(broker, {}):
            continue
        change = after.logs[broker][tp] - before.logs[broker][tp]
        if change >= 0:
            grown += change
            spent_s += after.at_s[broker] - before.at_s[broker]
    return grown / spent_s if spent_s > 0 else 0.0


def measure(
    admin: AdminApi,
    brokers: Sequence[int],
    seconds: float,
    readings: int = 5,
    topics: Sequence[str] | None = None,
    pauses: Pauses | None = None,
) -> tuple[Sizes, ...]:
    """Read the sizes ``readings`` times, evenly over so many seconds. Raises `KafkaError`."""
    pauses = pauses or Pauses()
    begun_s = pauses.clock()
    found = [read_sizes(admin, brokers, topics, pauses)]
    for number in range(1, readings):
        pauses.sleep(max(0.0, begun_s + seconds * number / (readings - 1) - pauses.clock()))
        found.append(read_sizes(admin, brokers, topics, pauses))
    return tuple(found)
