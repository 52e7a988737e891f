"""The connections of a producer, and the size of its batches, by its rate. Pure.

A broker reads the next request of a connection when it has answered the one before, and librdkafka sends one batch of
one partition a request. So one batch at a time is on its way on each connection, although an idempotent producer may
have five requests there. A connection carries at most batch size ÷ time of an answer. AutoMQ answered 4.0 batches a
second on one connection, of 15 records and of 96: its write-ahead log collects for 0.25 s.
"""

import math
from dataclasses import dataclass

BATCH_BYTES = 16384
"""The size of a batch where one connection needs no more: Java's default."""
MOST_BATCH_BYTES = 1_000_000
"""librdkafka's default of `message.max.bytes`, which bounds a batch."""
MOST_CONNECTIONS = 20
"""The most connections while larger batches can carry the rate. Each is a client of librdkafka with three threads."""


@dataclass(frozen=True, slots=True)
class Sending:
    """The connections of one producer to each broker, and the size of a batch in bytes."""

    connections: int
    batch_bytes: int


def connections(partitions: int, wanted: int = MOST_CONNECTIONS) -> int:
    """Return how many of the wanted connections are of use: one for each partition, and at least one.

    All records of a partition take the same connection, as they must not overtake each other.
    """
    return max(1, min(wanted, partitions))


def sending(rate_bytes_per_s: float, partitions: int, answer_s: float, *, transactional: bool = False) -> Sending:
    """Return the connections and batches with which a producer holds its rate if an answer takes `answer_s` seconds.

    Connections come first, then larger batches, then connections above `MOST_CONNECTIONS`, as no batch is larger than
    `MOST_BATCH_BYTES`. A transaction has one connection.
    """
    waiting = rate_bytes_per_s * answer_s
    fitting = min(math.ceil(waiting / BATCH_BYTES), MOST_CONNECTIONS)
    wanted = 1 if transactional else max(fitting, math.ceil(waiting / MOST_BATCH_BYTES))
    used = connections(partitions, wanted)
    busiest = math.ceil(partitions / used) / partitions
    return Sending(used, min(max(math.ceil(waiting * busiest), BATCH_BYTES), MOST_BATCH_BYTES))
