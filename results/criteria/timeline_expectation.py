"""A statement that an incident's timeline makes about its run, and the fields that such statements have.

A file is validated with readers of quantities as context (`6MB/s` is text there); a stored run holds plain numbers.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from results.contract.document import refusal
from results.contract.verdict import Direction, Finding, Verdict
from results.criteria.findings import finding
from results.criteria.replayed_run import ReplayedRun


def _count(value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise refusal(f"{value!r} is not a count; allowed: a whole number")
    return int(value)


def _quantity(kind: str) -> BeforeValidator:
    """Read a value with the context's reader of this kind of quantity; without one it is a plain number."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        reader = (info.context or {}).get(kind)
        return value if reader is None else reader(value)

    return BeforeValidator(validate)


def _written(such_as: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [such_as]})


Seconds = Annotated[float, _quantity("duration"), _written("40s")]
BytesPerSecond = Annotated[int, _quantity("byte_rate"), _written("6MB/s")]
Percent = Annotated[float, _quantity("share"), _written("99%")]
Bytes = Annotated[int, _quantity("size"), _written("1MiB")]
Count = Annotated[
    int,
    BeforeValidator(_count),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\$"}]}),
]


class Reference:
    """Marks a field that names something of the topology or of the incident: a broker, a topic or an uplink."""

    def __init__(self, kind: Literal["broker", "topic", "uplink"]) -> None:
        self.kind = kind


Broker = Annotated[str, Reference("broker")]
Topic = Annotated[str | None, Reference("topic"), Field(description="One topic; all unless given.")]
Rack = Annotated[str, Reference("uplink")]
Way = Annotated[Direction, Field(description="Transmit or receive, as the host or the rack sees it.")]


class TimelineExpectation(BaseModel):
    """A statement about the run from an entry on; `name` is that of its criterion, `key` its key in a file.

    A `timed` one depends on how fast the network and the machine are; it is judged only where both were sound.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    key: ClassVar[str]
    statement: ClassVar[str] = ""
    """What it states, in words; one with parameters overrides `__str__`."""
    timed: ClassVar[bool] = False
    shaped: ClassVar[bool] = True
    """Of a timed one: whether it also depends on what the NICs carry."""
    evidence: ClassVar[bool] = False
    """Whether it reads the final state of the cluster and the metadata log, which a replay records only on request."""
    series: ClassVar[tuple[str, ...]]
    unit: ClassVar[str] = ""

    @classmethod
    def name(cls) -> str:
        """Return the criterion's name."""
        return cls.key.replace("_", "-")

    def __str__(self) -> str:
        return self.statement

    def judge(self, run: ReplayedRun, since_us: int) -> Finding:
        """Judge the run from an instant (µs since the epoch) to the timeline's end."""
        raise NotImplementedError

    def found(
        self,
        verdict: Verdict,
        why: str,
        observed: float | str | None = None,
        *,
        unit: str | None = None,
        series: tuple[str, ...] | None = None,
        host: str | None = None,
        direction: Direction | None = None,
    ) -> Finding:
        """Return the judged criterion; without an observed number it has no unit."""
        unit = "" if observed is None or isinstance(observed, str) else unit or self.unit
        return finding(
            self.name(),
            self,
            verdict,
            why,
            observed=observed,
            unit=unit,
            series=series or self.series,
            host=host,
            direction=direction,
        )
