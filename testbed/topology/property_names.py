"""What editors know about Kafka's properties: names worth completing, and names a file may not set.

The list is for completion only: any other property is passed to Kafka as it is.
"""

from typing import Any

from testbed.topology.rules import OWNED_PREFIXES, OWNED_PROPERTIES, PROPERTY_NAME

_VALUE = ["string", "integer", "number", "boolean"]

COMMON_PROPERTIES: dict[str, tuple[str, str]] = {
    "num.replica.fetchers": ("integer", "Fetcher threads per source broker (1)."),
    "replica.fetch.response.max.bytes": ("integer", "Most bytes in one replica fetch response (10485760)."),
    "replica.fetch.max.bytes": ("integer", "Most bytes of one partition in a replica fetch (1048576)."),
    "replica.fetch.min.bytes": ("integer", "Fewest bytes a replica fetch waits for (1)."),
    "replica.fetch.wait.max.ms": ("integer", "Longest wait of a replica fetch at the leader, ms (500)."),
    "replica.fetch.backoff.ms": ("integer", "Sleep of a fetcher that has nothing to fetch, ms (1000)."),
    "replica.lag.time.max.ms": ("integer", "A follower behind for longer leaves the ISR, ms (30000)."),
    "replica.socket.receive.buffer.bytes": ("integer", "Socket buffer of replica fetches (65536)."),
    "replication.quota.window.num": ("integer", "Samples in the replication quota's window (11)."),
    "replication.quota.window.size.seconds": ("integer", "Length of one such sample, s (1)."),
    "auto.leader.rebalance.enable": (
        "boolean",
        "Whether preferred leaders are elected in the background (true).",
    ),
    "auto.create.topics.enable": ("boolean", "Whether topics appear when they are first used (true)."),
    "default.replication.factor": ("integer", "Replicas of a topic that names none (1)."),
    "min.insync.replicas": ("integer", "Replicas that must have a record before acks=all answers (1)."),
    "unclean.leader.election.enable": ("boolean", "Whether a replica outside the ISR may lead (false)."),
    "num.partitions": ("integer", "Partitions of a topic that names none (1)."),
    "num.network.threads": ("integer", "Threads for requests and responses on sockets (3)."),
    "num.io.threads": ("integer", "Threads that process requests (8)."),
    "socket.send.buffer.bytes": ("integer", "Socket send buffer, -1 for the kernel's (102400)."),
    "socket.receive.buffer.bytes": ("integer", "Socket receive buffer, -1 for the kernel's (102400)."),
    "log.segment.bytes": ("integer", "Size at which a log starts a new segment (1073741824)."),
    "log.retention.ms": ("integer", "How long records are kept, ms."),
    "log.retention.bytes": ("integer", "How many bytes of a partition are kept, -1 for all (-1)."),
    "message.max.bytes": ("integer", "Largest batch that is taken (1048588)."),
    "broker.session.timeout.ms": ("integer", "A broker silent for longer is fenced, ms (9000)."),
    "broker.heartbeat.interval.ms": ("integer", "How often a broker says it is there, ms (2000)."),
    "offsets.topic.replication.factor": ("integer", "Replicas of __consumer_offsets (3)."),
    "transaction.state.log.replication.factor": ("integer", "Replicas of __transaction_state (3)."),
}
"""Name → type and meaning; Kafka's default in brackets."""


def properties_schema() -> dict[str, Any]:
    """JSON schema of a `properties` mapping: completes the common names, refuses the testbed's own."""
    prefixes = "|".join(prefix.replace(".", r"\.") for prefix in OWNED_PREFIXES)
    return {
        "type": "object",
        "properties": {
            name: {"type": [kind, "string"], "description": text}
            for name, (kind, text) in sorted(COMMON_PROPERTIES.items())
        },
        "additionalProperties": {"type": _VALUE},
        "propertyNames": {
            "pattern": PROPERTY_NAME,
            "not": {"anyOf": [{"enum": sorted(OWNED_PROPERTIES)}, {"pattern": f"^({prefixes})"}]},
        },
    }
