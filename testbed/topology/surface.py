"""The form of a topology file: the fields a person may write, with units, and nothing else.

These models check each value on its own. What needs two values (an unknown rack, two equal node ids) is
checked by `resolve` and `rules`. Descriptions, patterns and examples here are what editors show through the
JSON schema.
"""

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from testbed.topology import rules
from testbed.topology.model import MIN_BURST_BYTES, Role
from testbed.topology.problems import choices, did_you_mean, show
from testbed.topology.property_names import properties_schema
from testbed.units import UnitError, format_size, parse_bit_rate, parse_size

_NUMBER = r"[0-9]+(\.[0-9]+)?"
RATE_PATTERN = rf"^{_NUMBER} ?([kKmMgG][bB][iI][tT]|[bB][iI][tT])(/s)?$"
SIZE_PATTERN = rf"^{_NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$"


def problem(message: str) -> PydanticCustomError:
    """An error whose whole text is `message` (braces are text, not placeholders)."""
    return PydanticCustomError("topology", "{message}", {"message": message})


def _text(check: Callable[[object], str | None]) -> BeforeValidator:
    def validate(value: Any) -> Any:
        wrong = check(value)
        if wrong is not None:
            raise problem(wrong)
        return value

    return BeforeValidator(validate)


def _rate(value: Any) -> int:
    try:
        rate_bps = parse_bit_rate(value)
    except UnitError as error:
        raise problem(str(error)) from None
    wrong = rules.rate_problem(rate_bps, show(value))
    if wrong is not None:
        raise problem(wrong)
    return rate_bps


def _burst(value: Any) -> int:
    try:
        burst_bytes = parse_size(value)
    except UnitError as error:
        raise problem(str(error)) from None
    if burst_bytes < MIN_BURST_BYTES:
        low = format_size(MIN_BURST_BYTES)
        raise problem(f"a burst of {format_size(burst_bytes)} is too small; allowed: {low} (one frame) or more")
    return burst_bytes


def _role(value: Any) -> Role:
    names = [role.value for role in Role]
    if not isinstance(value, str) or value not in names:
        raise problem(f"{show(value)} is not a role; allowed: {choices(names)}{did_you_mean(value, names)}")
    return Role(value)


def _description(value: Any) -> str | None:
    return None if isinstance(value, str) else f"{show(value)} is not text; allowed: text (in quotes if need be)"


def _rack_text(value: Any) -> str | None:
    return None if isinstance(value, str) else f"{show(value)} is not text; allowed: the name of a rack"


def _property_value(value: Any) -> str:
    if not isinstance(value, str | int | float):
        allowed = "text, a number, true or false (a list is text: a,b,c)"
        raise problem(f"{show(value)} is no property value; allowed: {allowed}")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    wrong = rules.property_value_problem(text)
    if wrong is not None:
        raise problem(wrong)
    return text


def _check_name(pattern: str, what: str) -> Callable[[object], str | None]:
    return lambda value: rules.name_problem(value, pattern, what)


Rate = Annotated[
    int,
    BeforeValidator(_rate),
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
    BeforeValidator(_burst),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": SIZE_PATTERN,
            "examples": ["16KiB", "50KiB", "128kB"],
            "description": "A size with its unit: B, kB, MB, GB (decimal) or KiB, MiB, GiB (binary).",
        }
    ),
]
RackOfHost = Annotated[str, _text(_rack_text), WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME})]
"""Whether there is such a rack is asked later, which answers every misspelling better than a pattern can."""
RackName = Annotated[
    str,
    _text(_check_name(rules.HOST_NAME, "rack")),
    WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME}),
]
HostName = Annotated[
    str,
    _text(_check_name(rules.HOST_NAME, "host")),
    WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME}),
]
PropertyName = Annotated[str, _text(rules.property_name_problem)]
PropertyValue = Annotated[str, BeforeValidator(_property_value)]
Properties = Annotated[dict[PropertyName, PropertyValue], WithJsonSchema(properties_schema())]


class _Surface(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NicForm(_Surface):
    """The data NIC, shaped both ways. Fields left out are inherited: host, then role, then defaults."""

    name: Annotated[
        str | None,
        _text(rules.nic_name_problem),
        WithJsonSchema({"type": "string", "pattern": rules.NIC_NAME, "default": "data0"}),
        Field(description="The interface's name inside the host; data0 unless given."),
    ] = None
    rate: Annotated[Rate | None, Field(description="Rate both ways, such as 400mbit.")] = None
    tx_rate: Annotated[Rate | None, Field(description="Rate at which the host can send; goes with rx_rate.")] = None
    rx_rate: Annotated[Rate | None, Field(description="Rate at which the host can receive; goes with tx_rate.")] = None
    burst: Annotated[
        Burst | None,
        Field(description="Bytes that may pass at once, both ways. Left out: 1 ms of the rate, at least 16KiB."),
    ] = None
    tx_burst: Annotated[Burst | None, Field(description="Burst of what the host sends.")] = None
    rx_burst: Annotated[Burst | None, Field(description="Burst of what the host receives.")] = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        for whole in ("rate", "burst"):
            sides = [name for name in (f"tx_{whole}", f"rx_{whole}") if name in self.model_fields_set]
            if whole in self.model_fields_set and sides:
                raise problem(
                    f"{whole} stands beside {' and '.join(sides)}; allowed: {whole} alone (both ways), "
                    f"or tx_{whole} and rx_{whole}"
                )
        return self


class KafkaForm(_Surface):
    """Which Kafka, and how it is set up. What is left out is inherited: host, role, whole cluster."""

    version: Annotated[
        str | None,
        _text(rules.version_problem),
        WithJsonSchema({"type": "string", "pattern": rules.VERSION, "examples": ["4.3.1", "3.9.2"]}),
        Field(description="Kafka release, all three numbers: 4.3.1 (or 4.3.0-rc1)."),
    ] = None
    properties: Annotated[
        Properties | None,
        Field(description="Properties as in server.properties; merged one by one when inherited."),
    ] = None


class DefaultsForm(_Surface):
    """What every host starts from. (Kafka's settings for all hosts stand in kafka, at the top.)"""

    nic: Annotated[NicForm | None, Field(description="The NIC of every host, unless its role or itself says else.")] = (
        None
    )


class KafkaRoleForm(_Surface):
    """What every host of this role has, unless the host says else."""

    nic: Annotated[NicForm | None, Field(description="The NIC of hosts of this role.")] = None
    kafka: Annotated[KafkaForm | None, Field(description="Kafka's version and properties for this role.")] = None


class ClientRoleForm(_Surface):
    """What every client has, unless the host says else. Clients run no Kafka."""

    nic: Annotated[NicForm | None, Field(description="The NIC of clients.")] = None


class RolesForm(_Surface):
    """Settings by role. A host takes those of its own role only: both is a role of its own."""

    broker: Annotated[KafkaRoleForm | None, Field(description="Hosts that hold partitions.")] = None
    controller: Annotated[KafkaRoleForm | None, Field(description="Hosts that vote in the metadata quorum.")] = None
    both: Annotated[KafkaRoleForm | None, Field(description="Hosts that are broker and controller.")] = None
    client: Annotated[ClientRoleForm | None, Field(description="Hosts without Kafka, for load.")] = None


class HostForm(_Surface):
    """One host."""

    role: Annotated[
        Role,
        BeforeValidator(_role),
        WithJsonSchema({"type": "string", "enum": [role.value for role in Role]}),
        Field(description="broker holds partitions, controller votes, both does both, client runs no Kafka."),
    ]
    rack: Annotated[RackOfHost | None, Field(description="One of racks; may be left out when there is only one.")] = (
        None
    )
    nic: Annotated[NicForm | None, Field(description="This host's NIC, where it differs.")] = None
    kafka: Annotated[KafkaForm | None, Field(description="This host's Kafka, where it differs; not for clients.")] = (
        None
    )
    node_id: Annotated[
        int | None,
        _text(rules.node_id_problem),
        WithJsonSchema({"type": "integer", "minimum": 0, "maximum": rules.MAX_NODE_ID}),
        Field(description="Kafka's node.id. Left out: counted from 1 in the file's order, past given ones."),
    ] = None


class TopologyForm(_Surface):
    """Hosts, racks and shaped NICs of a Kafka testbed. Documented in docs/topologies.md."""

    name: Annotated[
        str,
        _text(_check_name(rules.NAME, "topology")),
        WithJsonSchema({"type": "string", "pattern": rules.NAME}),
        Field(description="The topology's name, best that of its file."),
    ]
    description: Annotated[str, _text(_description), Field(description="One line for people.")] = ""
    racks: Annotated[
        list[RackName],
        Field(
            min_length=1,
            max_length=rules.MAX_RACKS,
            description="The racks; each is a network of its own. One, r1, unless given.",
        ),
    ] = ["r1"]
    kafka: Annotated[
        KafkaForm | None, Field(description="Kafka's version and properties for every host that runs it.")
    ] = None
    defaults: Annotated[DefaultsForm | None, Field(description="What every host starts from.")] = None
    roles: Annotated[RolesForm | None, Field(description="Settings by role, over defaults, under hosts.")] = None
    hosts: Annotated[
        dict[HostName, HostForm],
        Field(
            min_length=1,
            max_length=rules.MAX_HOSTS,
            description="The hosts by name; at least one broker and one controller (or one that is both).",
        ),
    ]
