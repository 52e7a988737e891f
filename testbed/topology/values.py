"""The values that may stand in a topology file: each is checked on its own, and told with its unit.

Patterns and examples here are what editors show through the JSON schema.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from testbed.meant import did_you_mean
from testbed.topology import link_rules, rules
from testbed.topology.links import MIN_BURST_BYTES, NicUse
from testbed.topology.model import Role
from testbed.topology.problems import choices, show
from testbed.topology.property_names import properties_schema
from testbed.units import (
    UnitError,
    format_size,
    parse_bit_rate,
    parse_byte_rate,
    parse_duration_us,
    parse_share,
    parse_size,
)

_NUMBER = r"[0-9]+(\.[0-9]+)?"
RATE_PATTERN = rf"^{_NUMBER} ?([kKmMgG][bB][iI][tT]|[bB][iI][tT])(/s)?$"
SIZE_PATTERN = rf"^{_NUMBER} ?(B|kB|KB|MB|GB|KiB|MiB|GiB)$"
BYTE_RATE_PATTERN = SIZE_PATTERN.removesuffix("$") + "/s$"
DURATION_PATTERN = rf"^{_NUMBER} ?(us|µs|ms|s|min|h)$"
SHARE_PATTERN = rf"^{_NUMBER} ?(%|ppm)$"


def problem(message: str) -> PydanticCustomError:
    """An error whose whole text is `message` (braces are text, not placeholders)."""
    return PydanticCustomError("topology", "{message}", {"message": message})


def text(check: Callable[[object], str | None]) -> BeforeValidator:
    """Refuses what `check` has words for, and leaves all else as it is."""

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
    wrong = link_rules.rate_problem(rate_bps, show(value))
    if wrong is not None:
        raise problem(wrong)
    return rate_bps


def _quantity(parse: Callable[[object], int], wrong: Callable[[int], str | None]) -> BeforeValidator:
    def validate(value: Any) -> int:
        try:
            quantity = parse(value)
        except UnitError as error:
            raise problem(str(error)) from None
        told = wrong(quantity)
        if told is not None:
            raise problem(told)
        return quantity

    return BeforeValidator(validate)


def _burst_problem(burst_bytes: int) -> str | None:
    if burst_bytes >= MIN_BURST_BYTES:
        return None
    low = format_size(MIN_BURST_BYTES)
    return f"a burst of {format_size(burst_bytes)} is too small; allowed: {low} (one frame) or more"


def _role(value: Any) -> Role:
    names = [role.value for role in Role]
    if not isinstance(value, str) or value not in names:
        raise problem(f"{show(value)} is not a role; allowed: {choices(names)}{did_you_mean(value, names)}")
    return Role(value)


def _use(value: Any) -> NicUse:
    names = [use.value for use in NicUse]
    if not isinstance(value, str) or value not in names:
        raise problem(f"{show(value)} is no use of a NIC; allowed: {choices(names)}{did_you_mean(value, names)}")
    return NicUse(value)


def description_problem(value: object) -> str | None:
    """Why this is no description, or None."""
    return None if isinstance(value, str) else f"{show(value)} is not text; allowed: text (in quotes if need be)"


def _rack_text(value: Any) -> str | None:
    return None if isinstance(value, str) else f"{show(value)} is not text; allowed: the name of a rack"


def _property_value(value: Any) -> str:
    if not isinstance(value, str | int | float):
        allowed = "text, a number, true or false (a list is text: a,b,c)"
        raise problem(f"{show(value)} is no property value; allowed: {allowed}")
    written = str(value).lower() if isinstance(value, bool) else str(value)
    wrong = rules.property_value_problem(written)
    if wrong is not None:
        raise problem(wrong)
    return written


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
    _quantity(parse_size, _burst_problem),
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
    _quantity(parse_duration_us, link_rules.delay_problem),
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
    _quantity(parse_share, link_rules.loss_problem),
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
    _quantity(parse_size, link_rules.disk_size_problem),
    WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN, "examples": ["500MB", "2GB"]}),
]
DiskBandwidth = Annotated[
    int,
    _quantity(parse_byte_rate, link_rules.disk_bandwidth_problem),
    WithJsonSchema({"type": "string", "pattern": BYTE_RATE_PATTERN, "examples": ["50MB/s", "200MB/s"]}),
]
Cpus = Annotated[
    float,
    text(rules.cpus_problem),
    WithJsonSchema({"type": "number", "minimum": rules.MIN_CPUS, "maximum": rules.MAX_CPUS, "examples": [0.5, 2]}),
]
"""In hundredths, as the engine takes them."""
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
RackOfHost = Annotated[str, text(_rack_text), WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME})]
"""Whether there is such a rack is asked later, which answers every misspelling better than a pattern can."""
RackName = Annotated[
    str,
    text(_check_name(rules.HOST_NAME, "rack")),
    WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME}),
]
HostName = Annotated[
    str,
    text(_check_name(rules.HOST_NAME, "host")),
    WithJsonSchema({"type": "string", "pattern": rules.HOST_NAME}),
]
NicName = Annotated[
    str,
    text(rules.nic_name_problem),
    WithJsonSchema({"type": "string", "pattern": rules.NIC_NAME}),
]
TopologyName = Annotated[
    str,
    text(_check_name(rules.NAME, "topology")),
    WithJsonSchema({"type": "string", "pattern": rules.NAME}),
]
PropertyName = Annotated[str, text(rules.property_name_problem)]
PropertyValue = Annotated[str, BeforeValidator(_property_value)]
Properties = Annotated[dict[PropertyName, PropertyValue], WithJsonSchema(properties_schema())]
