"""The outputs of kafka-topics, kafka-configs, kafka-log-dirs and kafka-broker-api-versions, from 2.4 to 4.x. Pure.

Each function takes one text, ignores the lines of other outputs, and adds to `problems` the lines that it cannot read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from testbed.incidents.evidence_text import (
    EvidenceText,
    JsonBlock,
    SourceLine,
    broker_ids,
    partition_name,
    topic_name,
    whole,
)
from testbed.kafka.types import ConfigResource, PartitionState, Reassignment, TopicPartition

TOPICS, CONFIGS, LOG_DIRS, API_VERSIONS = (
    "kafka-topics --describe",
    "kafka-configs --describe",
    "kafka-log-dirs --describe",
    "kafka-broker-api-versions",
)
"""The tools, as messages name them."""
_COLUMN = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)?):")
_SECTION = re.compile(
    r"(?:(?P<scope>Dynamic|All|Default) )?configs? for "
    r"(?:(?P<kind>broker|topic) (?P<name>\S+)|brokers in the cluster) are:",
    re.IGNORECASE,
)
_ZOOKEEPER = re.compile(
    r"Configs for (?:(?P<kind>broker|topic)s? '(?P<name>[^']*)'|default brokers) are(?: (?P<values>.*))?"
)
_VALUE = re.compile(r"\s+(?P<key>[a-z][\w.-]*)=(?P<value>.*?)(?: sensitive=\w+ synonyms=\{(?P<synonyms>.*)\})?\s*")
_NEXT_PAIR = re.compile(r",(?=[a-z][\w.-]*=)")
_ENDPOINT = re.compile(
    r"[^\s\[]\S*:\d+ \(id: (\d{1,10}) rack: (.*?)(?: isFenced: (?:true|false))?\)(?: -> (?:\(|ERROR: ).*)?"
)
_OWN_LEVEL = "DYNAMIC_TOPIC_CONFIG"
_COPY = "copy the whole output"


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """The head of a topic's description."""

    topic: str
    partitions: int
    configs: Mapping[str, str]
    place: SourceLine


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """One partition's description and where it stands; `running` is its reassignment, None without one."""

    state: PartitionState
    running: Reassignment | None
    place: SourceLine

    @classmethod
    def of_replicas(
        cls, tp: TopicPartition, replicas: tuple[int, ...], running: Reassignment | None, place: SourceLine
    ) -> "DescribedPartition":
        """Return the description of a partition of which neither the leader nor the ISR is known."""
        return cls(PartitionState(tp, None, 0, replicas, ()), running, place)


@dataclass(frozen=True, slots=True)
class EntityConfig:
    """The configuration of a broker, a topic or all brokers."""

    owner: ConfigResource
    values: dict[str, str]
    place: SourceLine


@dataclass(frozen=True, slots=True)
class BrokerRack:
    """A broker, and its rack or None when it has none."""

    broker: int
    rack: str | None
    place: SourceLine


@dataclass(slots=True)
class LogDirReport:
    """The log dirs of brokers: those that answered, the size of each partition, and dirs with an error."""

    brokers: set[int] = field(default_factory=set)
    size_bytes: dict[TopicPartition, int] = field(default_factory=dict)
    """That of the largest replica, which has all of the log; one that is being copied has less."""
    errors: list[tuple[int, str, SourceLine]] = field(default_factory=list)

    def add_block(self, block: JsonBlock, problems: list[str]) -> bool:
        """Add what `kafka-log-dirs --describe` printed; return whether the JSON object is that."""
        if not isinstance(block.value.get("brokers"), list):
            return False
        try:
            for each in _LOG_DIRS.validate_python(block.value["brokers"]):
                self.brokers.add(each.broker)
                for folder in each.logDirs:
                    if folder.error:
                        self.errors.append((each.broker, str(folder.error)[:80], block.place))
                    for replica in folder.partitions:
                        # A future replica is a copy that another log dir of the same broker gets.
                        if not replica.isFuture:
                            tp = partition_name(replica.partition)
                            self.size_bytes[tp] = max(self.size_bytes.get(tp, 0), replica.size)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, ("brokers", *first["loc"])))
            problems.append(f"{block.place}: {where}: {first['msg']}; {_COPY} of {LOG_DIRS}")
        except ValueError as error:
            problems.append(f"{block.place}: {error}; {_COPY} of {LOG_DIRS}")
        return True


class _Replica(BaseModel, strict=True):
    partition: str
    size: Annotated[int, Field(ge=0, lt=2**63)]
    isFuture: bool = False


class _LogDir(BaseModel, strict=True):
    error: Any = None
    partitions: list[_Replica]


class _BrokerLogDirs(BaseModel, strict=True):
    broker: Annotated[int, Field(ge=0, lt=2**31)]
    logDirs: list[_LogDir]


_LOG_DIRS = TypeAdapter(list[_BrokerLogDirs])


def _columns(line: str) -> dict[str, str]:
    heads = list(_COLUMN.finditer(line))
    ends = [each.start() for each in heads[1:]] + [len(line)]
    return {each[1]: line[each.end() : end].strip() for each, end in zip(heads, ends, strict=True)}


def _pairs(text: str) -> dict[str, str]:
    """Return the settings of `a=b,c=d,e`, in which a value may have commas."""
    pairs = (each.partition("=") for each in _NEXT_PAIR.split(text.strip()))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def described_topics(text: EvidenceText, problems: list[str]) -> tuple[list[DescribedTopic], list[DescribedPartition]]:
    """Return the topics and the partitions that `kafka-topics --describe` printed."""
    topics: list[DescribedTopic] = []
    partitions: list[DescribedPartition] = []
    for place, line in text.lines_with("Partition:", "PartitionCount:"):
        if not line.lstrip().startswith("Topic:"):
            continue
        columns = _columns(line)
        try:
            if "PartitionCount" in columns:
                count = whole(columns["PartitionCount"])
                topics.append(
                    DescribedTopic(topic_name(columns["Topic"]), count, _pairs(columns.get("Configs", "")), place)
                )
            elif "Partition" in columns:
                partitions.append(_partition(columns, place))
        except ValueError as error:
            problems.append(f"{place}: {error}; {_COPY} of {TOPICS}")
    return topics, partitions


def _partition(columns: Mapping[str, str], place: SourceLine) -> DescribedPartition:
    if lacking := [name for name in ("Leader", "Replicas", "Isr") if name not in columns]:
        raise ValueError(f"the line has no {' and no '.join(lacking)}")
    tp = TopicPartition(topic_name(columns["Topic"]), whole(columns["Partition"]))
    replicas, isr = broker_ids(columns["Replicas"]), broker_ids(columns["Isr"])
    if not replicas:
        raise ValueError(f"{tp} has no replicas")
    leader = None if columns["Leader"] in ("none", "-1", "") else whole(columns["Leader"])
    adding, removing = (broker_ids(columns.get(f"{which} Replicas", "")) for which in ("Adding", "Removing"))
    if strangers := {*adding, *removing} - {*replicas}:
        raise ValueError(f"{tp}: brokers {sorted(strangers)} are added or removed, and are no replicas")
    state = PartitionState(tp, leader, 0, replicas, isr)
    return DescribedPartition(state, Reassignment(replicas, adding, removing) if adding or removing else None, place)


def entity_configs(text: EvidenceText, problems: list[str]) -> list[EntityConfig]:
    """Return what `kafka-configs --describe` printed of brokers and topics: of topics, what they set themselves."""
    owners: list[EntityConfig] = []
    if "onfigs for " not in text.text and "onfig for " not in text.text:
        return owners
    section: EntityConfig | None = None
    own_level = False
    for number, line in enumerate(text.text.split("\n"), 1):
        place = SourceLine(text.file, number)
        try:
            if head := _SECTION.fullmatch(line.strip()):
                kind = (head["kind"] or "broker").lower()
                section = EntityConfig(_owner(kind, head["name"] or ""), {}, place)
                own_level = kind == "topic" and (head["scope"] or "").lower() == "all"
                owners.append(section)
            elif old := _ZOOKEEPER.fullmatch(line.strip()):
                name = "" if old["name"] in (None, "<default>") else old["name"]
                owners.append(EntityConfig(_owner(old["kind"] or "broker", name), _pairs(old["values"] or ""), place))
                section = None
            elif section is not None and (pair := _VALUE.fullmatch(line)):
                inherited = own_level and not (pair["synonyms"] or _OWN_LEVEL).startswith(_OWN_LEVEL)
                if pair["value"] != "null" and not inherited:
                    section.values[pair["key"]] = pair["value"]
            elif line.strip() and not line.startswith((" ", "\t")):
                section = None
        except ValueError as error:
            problems.append(f"{place}: {error}; {_COPY} of {CONFIGS}")
            section = None
    return owners


def _owner(kind: str, name: str) -> ConfigResource:
    if kind == "topic":
        return ConfigResource.topic(topic_name(name))
    return ConfigResource("broker", str(whole(name)) if name else "")


def broker_racks(text: EvidenceText) -> list[BrokerRack]:
    """Return the brokers that `kafka-broker-api-versions` printed, with their racks."""
    racks: list[BrokerRack] = []
    for place, line in text.lines_with("(id: "):
        # A log's lines name controllers, too, and the address of --bootstrap-server has a negative id.
        if (broker := _ENDPOINT.fullmatch(line.strip())) and int(broker[1]) < 2**31:
            racks.append(BrokerRack(int(broker[1]), None if broker[2] in ("null", "") else broker[2], place))
    return racks
