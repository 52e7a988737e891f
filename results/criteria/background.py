"""Background traffic of a broker's NIC: requests of brokers and of the testbed, in addition to copies and records.

Its rate does not depend on the throttle. So it is a small part of a fast move, and much of a slow one. No time of a run
has it alone: before the move the testbed polls less, and a preload is still replicated. `docs/criteria.md` derives the
bound, under *Background traffic*.
"""

from results.contract.move import Move
from results.contract.relocation import Relocation

REQUESTS_BYTES_PER_S = 15e3
"""Requests whose size does not depend on partitions: polls of configurations, of metadata and of reassignments."""
BROKER_BYTES_PER_S = 1e3
"""Of each other broker: heartbeats, fetches of the metadata log, and fetches that bring no record."""
PARTITION_BYTES_PER_S = 300.0
"""Of each partition: its entries in lists of throttled replicas, in metadata, and in lists of reassignments."""


def background_bytes(move: Move, seconds: float) -> float:
    """Return the most bytes that cross the NIC of one broker in one direction meanwhile, besides copies and clients."""
    partitions = {(flow.topic, partition) for flow in move.flows for partition in flow.partitions}
    return _most_bytes(len(move.brokers), len(partitions), seconds)


def received_background_bytes(asked: Relocation, seconds: float) -> float:
    """Return the most bytes that all brokers of a move without a throttle receive meanwhile, besides those."""
    return len(asked.brokers) * _most_bytes(len(asked.brokers), asked.partitions, seconds)


def _most_bytes(brokers: int, partitions: int, seconds: float) -> float:
    return seconds * (REQUESTS_BYTES_PER_S + BROKER_BYTES_PER_S * (brokers - 1) + PARTITION_BYTES_PER_S * partitions)
