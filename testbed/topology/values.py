"""The types of the values in a topology file: each value is checked on its own, with its unit.

Editors show the patterns and examples of this module through the JSON schema. They complete the names in
`COMMON_PROPERTIES`; the testbed passes any other property to Kafka as it is.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from testbed.form import check, quantity, refusal
from testbed.suggestions import choices, did_you_mean, show
from testbed.topology import jvm, links, rules
from testbed.topology.host import Role
from testbed.topology.links import MIN_BURST_BYTES, NicUse
from testbed.topology.rules import OWNED_PREFIXES, OWNED_PROPERTIES, PROPERTY_NAME
from testbed.units import format_size, parse_bit_rate, parse_byte_rate, parse_duration_us, parse_share, parse_size

_NUMBER = r"[0-9]+(\.[0-9]+)?"
RATE_PATTERN = rf"^{_NUMBER} ?([kKmMgG][bB][iI][tT]|[bB][iI][tT])(/s)?$"
SIZE_PATTERN = rf"^{_NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$"
BYTE_RATE_PATTERN = SIZE_PATTERN.removesuffix("$") + "/s$"
DURATION_PATTERN = rf"^{_NUMBER} ?(us|µs|ms|s|min|h)$"
SHARE_PATTERN = rf"^{_NUMBER} ?(%|ppm)$"


def _without_text(problem_of: Callable[[int], str | None]) -> Callable[[int, str], str | None]:
    return lambda number, _text: problem_of(number)


def _burst_problem(burst_bytes: int) -> str | None:
    if burst_bytes >= MIN_BURST_BYTES:
        return None
    low = format_size(MIN_BURST_BYTES)
    return f"a burst of {format_size(burst_bytes)} is too small; allowed: {low} (one frame) or more"


def _role(value: Any) -> Role:
    names = [role.value for role in Role]
    if not isinstance(value, str) or value not in names:
        raise refusal(f"{show(value)} is not a role; allowed: {choices(names)}{did_you_mean(value, names)}")
    return Role(value)


def _use(value: Any) -> NicUse:
    names = [use.value for use in NicUse]
    if not isinstance(value, str) or value not in names:
        raise refusal(f"{show(value)} is no use of a NIC; allowed: {choices(names)}{did_you_mean(value, names)}")
    return NicUse(value)


def description_problem(value: object) -> str | None:
    """Return why this is no description, or None."""
    return None if isinstance(value, str) else f"{show(value)} is not text; allowed: text (in quotes if need be)"


def _rack_problem(value: Any) -> str | None:
    return None if isinstance(value, str) else f"{show(value)} is not text; allowed: the name of a rack"


def _property_value(value: Any) -> str:
    if not isinstance(value, str | int | float):
        allowed = "text, a number, true or false (a list is text: a,b,c)"
        raise refusal(f"{show(value)} is no property value; allowed: {allowed}")
    written = str(value).lower() if isinstance(value, bool) else str(value)
    wrong = rules.property_value_problem(written)
    if wrong is not None:
        raise refusal(wrong)
    return written


def _check_name(pattern: str, what: str) -> Callable[[object], str | None]:
    return lambda value: rules.name_problem(value, pattern, what)


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


def _properties_schema() -> dict[str, Any]:
    """Return the JSON schema of a `properties` mapping: it completes common names and refuses the testbed's own."""
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


Rate = Annotated[
    int,
    quantity(parse_bit_rate, links.rate_problem),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": RATE_PATTERN,
            "examples": ["100mbit", "400mbit", "1gbit", "10gbit"],
            "description": "A rate on the wire with its unit (kbit, mbit, gbit), 8kbit to 100gbit.",
        }
    ),
]
Burst = Annotated[
    int,
    quantity(parse_size, _without_text(_burst_problem)),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": SIZE_PATTERN,
            "examples": ["16KiB", "50KiB", "128kB"],
            "description": "A size with its unit: B, kB, MB, GB (decimal) or KiB, MiB, GiB (binary).",
        }
    ),
]
Delay = Annotated[
    int,
    quantity(parse_duration_us, _without_text(links.delay_problem)),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": DURATION_PATTERN,
            "examples": ["500us", "20ms", "1s"],
            "description": "A time with its unit (us, ms, s), 10s at most.",
        }
    ),
]
"""Microseconds."""
Loss = Annotated[
    int,
    quantity(parse_share, _without_text(links.loss_problem)),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": SHARE_PATTERN,
            "examples": ["0.1%", "2%", "50ppm"],
            "description": "A share with its unit (% or ppm), 50% at most.",
        }
    ),
]
"""Parts per million."""
DiskSize = Annotated[
    int,
    quantity(parse_size, _without_text(links.disk_size_problem)),
    WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN, "examples": ["500MB", "2GB"]}),
]
DiskBandwidth = Annotated[
    int,
    quantity(parse_byte_rate, _without_text(links.disk_bandwidth_problem)),
    WithJsonSchema({"type": "string", "pattern": BYTE_RATE_PATTERN, "examples": ["50MB/s", "200MB/s"]}),
]
Cpus = Annotated[
    float,
    check(rules.cpus_problem),
    WithJsonSchema({"type": "number", "minimum": rules.MIN_CPUS, "maximum": rules.MAX_CPUS, "examples": [0.5, 2]}),
]
"""In hundredths, as the engine takes them."""
Heap = Annotated[
    int,
    quantity(parse_size, _without_text(jvm.heap_problem)),
    WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN, "examples": ["512MiB", "1GiB"]}),
]
Collector = Annotated[
    str, check(jvm.collector_problem), WithJsonSchema({"type": "string", "enum": list(jvm.COLLECTORS)})
]
JvmFlag = Annotated[
    str,
    check(jvm.flag_problem),
    WithJsonSchema({"type": "string", "pattern": f"^({jvm.FLAG})$", "examples": ["-XX:MaxGCPauseMillis=20"]}),
]
HostRole = Annotated[
    Role,
    BeforeValidator(_role),
    WithJsonSchema({"type": "string", "enum": [role.value for role in Role]}),
]
Use = Annotated[
    NicUse,
    BeforeValidator(_use),
    WithJsonSchema({"type": "string", "enum": [use.value for use in NicUse]}),
]
RackOfHost = Annotated[str, check(_rack_problem), WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME})]
"""The rules check later that the rack exists; their message names the nearest rack."""
RackName = Annotated[
    str,
    check(_check_name(rules.HOST_NAME, "rack")),
    WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME}),
]
HostName = Annotated[
    str,
    check(_check_name(rules.HOST_NAME, "host")),
    WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME}),
]
NicName = Annotated[
    str,
    check(rules.nic_name_problem),
    WithJsonSchema({"type": "string", "pattern": rules.NIC_NAME}),
]
TopologyName = Annotated[
    str,
    check(_check_name(rules.NAME, "topology")),
    WithJsonSchema({"type": "string", "pattern": rules.NAME}),
]
PropertyName = Annotated[str, check(rules.property_name_problem)]
PropertyValue = Annotated[str, BeforeValidator(_property_value)]
Properties = Annotated[dict[PropertyName, PropertyValue], WithJsonSchema(_properties_schema())]
