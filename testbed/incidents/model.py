"""The form of an incident's file, and the two variants that it describes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, StrictBool, model_validator

from results.contract.document import refusal
from results.contract.incident import Variant
from results.criteria.expectations import EXPECTATIONS
from results.criteria.timeline_expectation import Reference, TimelineExpectation
from testbed.incidents.actions import ACTIONS, Action
from testbed.incidents.forms import (
    ByteRate,
    Duration,
    IncidentModel,
    Name,
    OneKey,
    ParameterName,
    Placement,
    Property,
    PropertyName,
    Scalar,
    Size,
    Text,
    ThrottleRate,
    TopicName,
    TopicNames,
    one_key,
    one_or_more,
    parsed,
    whole_number,
)
from testbed.incidents.triggers import AtTime, Trigger, TriggerForm
from testbed.topology.model import Topology
from testbed.yaml_document import FieldPath

VARIANTS: tuple[Variant, ...] = ("broken", "fixed")
MAX_PARTITIONS, MAX_RECORDS, MAX_BYTES = 500, 10**7, 4 * 10**9
_KAFKA = "The release that the brokers run in this variant; that of the topology unless given."
_DEFECTS = "Defects of the brokers in this variant, each as `testbed run --defect` has it."
_MIN_RECORD, _MAX_RECORD, _MAX_RECORDS_PER_S = 64, 2**20, 50_000
MOST_LOADS = 8
"""Producers of an incident. Each is a process of its own."""


def _check_record_size(size: int) -> None:
    if not _MIN_RECORD <= size <= _MAX_RECORD:
        raise refusal(f"record_size of {size} bytes; allowed: 64B to 1MiB")


class TopicState(IncidentModel):
    """A topic before the incident."""

    partitions: Annotated[int, *whole_number(MAX_PARTITIONS), Field(description="How many partitions.")]
    replicas: Annotated[
        Placement,
        Field(description="Hosts of each partition's replicas, the leader first; or a list of such lists, in turn."),
    ]
    size: Annotated[Size | None, Field(description="Bytes of all records together; none unless given.")] = None
    records: Annotated[
        int | None,
        *whole_number(MAX_RECORDS),
        Field(description="Records of all partitions together, in place of size."),
    ] = None
    record_size: Annotated[Size, Field(description="Bytes of a record.")] = 4096
    configs: Annotated[
        dict[PropertyName, Property], Field(default_factory=dict, description="The topic's own configuration.")
    ]

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if self.size is not None and self.records is not None:
            raise refusal("size and records are both given; allowed: one of them")
        _check_record_size(self.record_size)
        if max(self.size or 0, (self.records or 0) * self.record_size) > MAX_BYTES:
            raise refusal("more than 4 GB; allowed: 4 GB in a topic")
        return self

    @property
    def placement(self) -> tuple[tuple[str, ...], ...]:
        """Return each partition's hosts, the preferred leader first."""
        return tuple(tuple(self.replicas[p % len(self.replicas)]) for p in range(self.partitions))

    @property
    def records_per_partition(self) -> int:
        """Return the number of records that each partition has before the incident."""
        in_all = self.records if self.records is not None else -(-(self.size or 0) // self.record_size)
        return -(-in_all // self.partitions)

    @property
    def bytes(self) -> int:
        """Return the size of all records in bytes; each record counts once."""
        return self.partitions * self.records_per_partition * self.record_size


class InitialThrottle(IncidentModel):
    """A throttle that is set before the timeline starts."""

    rate: Annotated[ThrottleRate, Field(description="Of every broker, as leader and as follower.")]
    topics: Annotated[
        TopicNames, Field(default_factory=list, description="Topics all of whose replicas are listed (*).")
    ]


class ClusterState(IncidentModel):
    """The state of the cluster when the incident begins."""

    topics: Annotated[dict[TopicName, TopicState], Field(min_length=1, description="The topics by name.")]
    properties: Annotated[
        dict[PropertyName, Property], Field(default_factory=dict, description="Broker properties over the topology's.")
    ]
    throttle: Annotated[InitialThrottle | None, Field(description="A throttle that an earlier move left behind.")] = (
        None
    )


class LoadForm(IncidentModel):
    """One open-loop producer: it keeps its rate, whatever the cluster does."""

    produce: Annotated[ByteRate, Field(description="Bytes of records a second.")]
    to: Annotated[str, Reference("topic"), Field(description="An empty topic of the incident.")]
    record_size: Annotated[Size, Field(description="Bytes of a record.")] = 4096

    @model_validator(mode="after")
    def _few(self) -> Self:
        _check_record_size(self.record_size)
        if not self.produce:
            raise refusal("a load of nothing; allowed: 1B/s or more, or no load")
        if self.produce / self.record_size > _MAX_RECORDS_PER_S:
            raise refusal(
                f"more than {_MAX_RECORDS_PER_S} records a second; allowed: a lower rate, or a larger record_size"
            )
        return self


if TYPE_CHECKING:  # for mypy the models with the keys are the model that they derive from
    KnownAction = OneKey
    KnownExpectation = OneKey
else:
    KnownAction = one_key("ActionForm", "action", ACTIONS)
    KnownExpectation = one_key("ExpectationForm", "expectation", EXPECTATIONS)


class EntryForm(IncidentModel):
    """One entry of the timeline: when, what is done, and what is expected from then on."""

    name: Annotated[Name | None, Field(description="For the variants and the report.")] = None
    at: Annotated[TriggerForm | None, Field(description="When it acts: a time after the start, or a condition.")] = None
    delay: Annotated[Duration, Field(description="Acts so long after the trigger came.")] = 0.0
    within: Annotated[
        Duration | None,
        Field(description="The trigger must come by then (time after the start), or the replay is inconclusive."),
    ] = None
    optional: Annotated[StrictBool, Field(description="The trigger need not come.")] = False
    loose: Annotated[StrictBool, Field(description="It may act late or never, and its actions may fail.")] = False
    do: Annotated[
        list[KnownAction],
        parsed(one_or_more),
        Field(default_factory=list, description="An action or a fault, or a list of them, done one after the other."),
    ]
    expect: Annotated[
        list[KnownExpectation],
        parsed(one_or_more),
        Field(default_factory=list, description="What is expected from then on to the end, or a list of it."),
    ]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.do and not self.expect:
            raise refusal("nothing to do and nothing to expect; allowed: do, expect, or both")
        if self.at is None and self.do:
            raise refusal("it does not say when; allowed: at, with a time or a condition")
        return self

    @property
    def trigger(self) -> Trigger:
        """Return the trigger. An entry without one acts at the start."""
        return AtTime(0.0) if self.at is None else self.at.trigger

    @property
    def actions(self) -> tuple[Action, ...]:
        """Return the entry's actions."""
        return tuple(each.value for each in self.do)

    @property
    def expectations(self) -> tuple[TimelineExpectation, ...]:
        """Return the entry's expectations."""
        return tuple(each.value for each in self.expect)


class BrokenForm(IncidentModel):
    """The variant that goes wrong: the timeline as it stands."""

    summary: Annotated[Text, Field(description="What is done wrong.")]
    expected_failures: Annotated[
        list[str], Field(description="Names of the criteria that it fails; empty: not known yet, as after a capture.")
    ]
    kafka: Annotated[str | None, Field(description=_KAFKA)] = None
    defects: Annotated[list[str], Field(default_factory=list, description=_DEFECTS)]


class FixedForm(IncidentModel):
    """The variant that is right: what differs from the timeline. It is expected to pass everything."""

    summary: Annotated[Text, Field(description="What is done instead.")]
    kafka: Annotated[str | None, Field(description=_KAFKA)] = None
    defects: Annotated[list[str], Field(default_factory=list, description=_DEFECTS)]
    parameters: Annotated[dict[str, Scalar], Field(default_factory=dict, description="Other values of parameters.")]
    replace: Annotated[
        dict[str, EntryForm], Field(default_factory=dict, description="Named entries that are different.")
    ]
    drop: Annotated[list[str], Field(default_factory=list, description="Named entries that are left out.")]
    add: Annotated[list[EntryForm], Field(default_factory=list, description="Entries that come in addition.")]


class IncidentForm(IncidentModel):
    """A failure as it once happened, to be replayed and judged. Documented in docs/incidents.md."""

    name: Annotated[Name, Field(description="The incident's name, best that of its file.")]
    summary: Annotated[Text, Field(description="What happens, in a sentence or two.")]
    reference: Annotated[Text | None, Field(description="Where it is described.")] = None
    topology: Annotated[str, Field(description="A ready topology's name, or a path (from this file's folder).")]
    lasts: Annotated[Duration, Field(description="The replay ends then at the latest.")]
    settle: Annotated[
        Duration, Field(description="How long the cluster is polled after the last entry and the last move.")
    ] = 3.0
    parameters: Annotated[
        dict[ParameterName, Scalar],
        Field(
            default_factory=dict,
            description="Values that `$NAME` stands for below, and that --set may change.",
        ),
    ]
    state: Annotated[ClusterState, Field(description="The state of the cluster at the beginning.")]
    load: Annotated[
        list[LoadForm],
        parsed(one_or_more),
        Field(
            default_factory=list, max_length=MOST_LOADS, description="A producer, or a list of them, one for a topic."
        ),
    ]
    timeline: Annotated[list[EntryForm], Field(min_length=1, description="What happens when.")]
    broken: Annotated[BrokenForm, Field(description="The variant that goes wrong: the timeline as it stands.")]
    fixed: Annotated[FixedForm, Field(description="The variant that is right: what differs.")]


@dataclass(frozen=True, slots=True)
class ScheduledEntry:
    """A named entry of one variant.

    `deadline_s` is counted from the start. A trigger that has not come by then makes the replay inconclusive, unless
    the entry is optional.
    """

    name: str
    trigger: Trigger
    actions: tuple[Action, ...]
    expectations: tuple[TimelineExpectation, ...]
    deadline_s: float
    delay_s: float = 0.0
    optional: bool = False
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Incident:
    """One variant of an incident, ready for replay."""

    name: str
    variant: Variant
    summary: str
    variant_summary: str
    topology: Topology
    state: ClusterState
    loads: tuple[LoadForm, ...]
    entries: tuple[ScheduledEntry, ...]
    lasts_s: float
    settle_s: float
    expected_failures: tuple[str, ...]
    defects: tuple[str, ...] | None = None
    """None when neither variant of the file has any."""
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    document: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class IncidentFile:
    """Both variants of one file."""

    broken: Incident
    fixed: Incident

    def variant(self, name: Variant) -> Incident:
        """Return the variant of this name."""
        return self.broken if name == "broken" else self.fixed


PlacedEntry = tuple[FieldPath, EntryForm]
"""An entry and its path in its file."""


def entries_of(form: IncidentForm, variant: Variant) -> list[PlacedEntry]:
    """Return the entries of a variant."""
    entries: list[PlacedEntry] = [(("timeline", index), entry) for index, entry in enumerate(form.timeline)]
    if variant == "broken":
        return entries
    fixed = form.fixed
    kept: list[PlacedEntry] = []
    for path, entry in entries:
        if entry.name in fixed.replace:
            # The replacement keeps the name, so that a report can compare both variants.
            other = fixed.replace[entry.name].model_copy(update={"name": entry.name})
            kept.append((("fixed", "replace", entry.name or ""), other))
        elif entry.name not in fixed.drop:
            kept.append((path, entry))
    return [*kept, *((("fixed", "add", index), entry) for index, entry in enumerate(fixed.add))]


def scheduled(path: FieldPath, form: EntryForm, lasts_s: float) -> ScheduledEntry:
    """Return the entry at this path of a file, with the defaults of all omitted fields."""
    return ScheduledEntry(
        name=form.name or _numbered(path),
        trigger=form.trigger,
        actions=form.actions,
        expectations=form.expectations,
        deadline_s=form.within if form.within is not None else lasts_s,
        delay_s=form.delay,
        optional=form.optional or form.loose,
        loose=form.loose,
    )


def _numbered(path: FieldPath) -> str:
    """Return the name of an entry without one: `entry 3`, counted from 1."""
    last = path[-1]
    return f"{'added ' if path[0] == 'fixed' else 'entry '}{last + 1}" if isinstance(last, int) else str(last)
