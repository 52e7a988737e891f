"""The types of the values in a topology file: each value is checked on its own, with its unit.

Editors show the patterns and examples of this module through the JSON schema. They complete the names in
`COMMON_PROPERTIES`; the testbed passes any other property to Kafka as it is.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, WithJsonSchema

from results.contract.document import refusal
from testbed.form import check, quantity, text_schema
from testbed.suggestions import choices, did_you_mean, show
from testbed.topology import jvm, links, rules
from testbed.topology.host import Role
from testbed.topology.inventory import text_type, unknown_user
from testbed.topology.links import NicUse
from testbed.topology.rules import OWNED_PREFIXES, OWNED_PROPERTIES, PROPERTY_NAME
from testbed.units import parse_bit_rate, parse_byte_rate, parse_duration_us, parse_share, parse_size

IMAGE = r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$"
NUMBER = r"[0-9]+(\.[0-9]+)?"
RATE_PATTERN = rf"^{NUMBER} ?([kKmMgG][bB][iI][tT]|[bB][iI][tT])(/s)?$"
SIZE_PATTERN = rf"^{NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$"
BYTE_RATE_PATTERN = SIZE_PATTERN.removesuffix("$") + "/s$"
DURATION_PATTERN = rf"^{NUMBER} ?(us|µs|ms|s|min|h)$"
SHARE_PATTERN = rf"^{NUMBER} ?(%|ppm)$"


E = TypeVar("E", bound=StrEnum)


def _one_of(kind: type[E], refused: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Return the type of an enumeration's values; `refused` begins its message, such as `is not a role`."""
    names = [each.value for each in kind]

    def parsed(value: Any) -> E:
        if not isinstance(value, str) or value not in names:
            raise refusal(f"{show(value)} {refused}; allowed: {choices(names)}{did_you_mean(value, names)}")
        return kind(value)

    return BeforeValidator(parsed), WithJsonSchema({"type": "string", "enum": names})


def _text_problem(allowed: str) -> Callable[[object], str | None]:
    return lambda value: None if isinstance(value, str) else f"{show(value)} is not text; allowed: {allowed}"


def _property_value(value: Any) -> str:
    if not isinstance(value, str | int | float):
        allowed = "text, a number, true or false (a list is text: a,b,c)"
        raise refusal(f"{show(value)} is no property value; allowed: {allowed}")
    written = str(value).lower() if isinstance(value, bool) else str(value)
    wrong = rules.property_value_problem(written)
    if wrong is not None:
        raise refusal(wrong)
    return written


def _quantity(
    parsed: Callable[[object], int], problem_of: Callable[[int], str | None], pattern: str, *examples: str
) -> tuple[BeforeValidator, WithJsonSchema]:
    return quantity(parsed, lambda number, _text: problem_of(number)), text_schema(pattern, *examples)


def _name(pattern: str, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    return check(lambda value: rules.name_problem(value, pattern, what)), text_schema(pattern)


def _path(allowed: str, *examples: str) -> tuple[BeforeValidator, WithJsonSchema]:
    def problem(found: object) -> str | None:
        if isinstance(found, str) and found.strip() and found.isprintable():
            return unknown_user(found)
        return f"{show(found)} is no path; allowed: {allowed}"

    return check(problem), WithJsonSchema({"type": "string", "minLength": 1, "examples": list(examples)})


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
    "auto.leader.rebalance.enable": ("boolean", "Whether preferred leaders are elected in the background (true)."),
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
    "log.retention.ms": ("integer", "How long a broker retains records, ms."),
    "log.retention.bytes": ("integer", "How many bytes of a partition a broker retains, -1 for all (-1)."),
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
    text_schema(RATE_PATTERN, "100mbit", "400mbit", "1gbit", "10gbit"),
]
Burst = Annotated[int, *_quantity(parse_size, links.least_burst_problem, SIZE_PATTERN, "16KiB", "50KiB", "128kB")]
Delay = Annotated[int, *_quantity(parse_duration_us, links.delay_problem, DURATION_PATTERN, "500us", "20ms", "1s")]
"""Microseconds."""
Loss = Annotated[int, *_quantity(parse_share, links.loss_problem, SHARE_PATTERN, "0.1%", "2%", "50ppm")]
"""Parts per million."""
DiskSize = Annotated[int, *_quantity(parse_size, links.disk_size_problem, SIZE_PATTERN, "500MB", "2GB")]
DiskBandwidth = Annotated[
    int, *_quantity(parse_byte_rate, links.disk_bandwidth_problem, BYTE_RATE_PATTERN, "50MB/s", "200MB/s")
]
Cpus = Annotated[
    float,
    check(rules.cpus_problem),
    WithJsonSchema({"type": "number", "minimum": rules.MIN_CPUS, "maximum": rules.MAX_CPUS, "examples": [0.5, 2]}),
]
"""In hundredths, as the engine takes them."""
_HEAP_PATTERN = f"{SIZE_PATTERN}|^{jvm.HEAP_WORDS}$"
Heap = Annotated[int, *_quantity(jvm.parse_heap, jvm.heap_problem, _HEAP_PATTERN, "512MiB", "1GiB", "-Xms1G -Xmx1G")]
Collector = Annotated[
    str, check(jvm.collector_problem), WithJsonSchema({"type": "string", "enum": list(jvm.COLLECTORS)})
]
JvmFlag = Annotated[str, check(jvm.flag_problem), text_schema(f"^({jvm.FLAG})$", "-XX:MaxGCPauseMillis=20")]
HostRole = Annotated[Role, *_one_of(Role, "is not a role")]
Use = Annotated[NicUse, *_one_of(NicUse, "is no use of a NIC")]
RackOfHost = Annotated[str, check(_text_problem("the name of a rack")), text_schema(rules.HOST_NAME)]
"""The rules check later that the rack exists; their message names the nearest rack."""
RackName = Annotated[str, *_name(rules.HOST_NAME, "rack")]
HostName = Annotated[str, *_name(rules.HOST_NAME, "host")]
NicName = Annotated[str, check(rules.nic_name_problem), text_schema(rules.NIC_NAME)]
TopologyName = Annotated[str, *_name(rules.NAME, "topology")]
Description = Annotated[str, check(_text_problem("text (in quotes if need be)"))]
KafkaVersion = Annotated[str, check(rules.version_problem), text_schema(rules.VERSION, "4.3.1", "3.9.2")]
KafkaPath = Annotated[
    str, *_path("a release tarball or a folder with a build, such as ../kafka", "../kafka", "~/kafka_2.13-4.3.1.tgz")
]
AutomqPath = Annotated[
    str, *_path("a release tarball or its unpacked folder, such as ../automq", "../automq", "~/automq-1.5.0.tgz")
]
ManagerPath = Annotated[
    str, *_path("the folder with the jars of a RemoteStorageManager, such as ../tiered-storage", "../tiered-storage")
]
ImageName = Annotated[
    str, *text_type(IMAGE, "image", "a name the container engine knows, such as automq:1.5.0", "automq:1.5.0")
]
NodeId = Annotated[
    int, check(rules.node_id_problem), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": rules.MAX_NODE_ID})
]
PropertyName = Annotated[str, check(rules.property_name_problem)]
PropertyValue = Annotated[str, BeforeValidator(_property_value)]
Properties = Annotated[dict[PropertyName, PropertyValue], WithJsonSchema(_properties_schema())]
