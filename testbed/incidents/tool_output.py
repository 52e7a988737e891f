"""What kafka-topics, kafka-configs, kafka-log-dirs and kafka-broker-api-versions print, from 2.4 to 4.x. Pure.

Each function takes one text, ignores the lines of other outputs, and adds to `problems` the lines that it cannot read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.incidents.evidence import (
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
_ZOOKEEPER = re.compile(r"Configs for (?P<kind>broker|topic)s? '(?P<name>[^']*)' are (?P<values>.*)")
_VALUE = re.compile(r"\s+(?P<key>[a-z][\w.-]*)=(?P<value>.*?)(?: sensitive=\w+ synonyms=\{(?P<synonyms>.*)\})?\s*")
_NEXT_PAIR = re.compile(r",(?=[a-z][\w.-]*=)")
_ENDPOINT = re.compile(r"[^\s\[]\S*:\d+ \(id: (\d{1,10}) rack: (.*?)(?: isFenced: (?:true|false))?\)(?: -> \(.*)?")
_OWN_LEVEL = "DYNAMIC_TOPIC_CONFIG"
_MOST_SIZE = 2**63
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
    """One partition's description; `running` has the columns of a reassignment, None where they are empty."""

    state: PartitionState
    running: Reassignment | None
    place: SourceLine


@dataclass(frozen=True, slots=True)
class EntityConfig:
    """The configuration of a broker, a topic or all brokers."""

    owner: ConfigResource
    values: dict[str, str]
    place: SourceLine


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """The bytes of one replica's log on a broker."""

    broker: int
    tp: TopicPartition
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BrokerRack:
    """A broker, and its rack or None when it has none."""

    broker: int
    rack: str | None
    place: SourceLine


@dataclass(slots=True)
class LogDirReport:
    """The log dirs of brokers: those that answered, the sizes of the replicas in use, and dirs with an error."""

    brokers: set[int] = field(default_factory=set)
    sizes: list[ReplicaSize] = field(default_factory=list)
    errors: list[tuple[int, str, SourceLine]] = field(default_factory=list)


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
    state = PartitionState(tp, leader, 0, replicas, isr, broker_ids(columns.get("Offline", "")))
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
                name = "" if old["name"] == "<default>" else old["name"]
                owners.append(EntityConfig(_owner(old["kind"], name), _pairs(old["values"]), place))
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


def log_dirs(block: JsonBlock, problems: list[str]) -> LogDirReport | None:
    """Return the log dirs of a JSON object that `kafka-log-dirs --describe` printed; None when it is another one."""
    if not isinstance(block.value.get("brokers"), list):
        return None
    report = LogDirReport()
    try:
        for entry in block.value["brokers"]:
            broker = _id_of(_member(entry, "broker"))
            report.brokers.add(broker)
            for folder in _list(entry, "logDirs"):
                if error := folder.get("error") if isinstance(folder, dict) else None:
                    report.errors.append((broker, str(error)[:80], block.place))
                report.sizes += _replicas(broker, folder)
    except ValueError as error:
        problems.append(f"{block.place}: {error}; {_COPY} of {LOG_DIRS}")
    return report


def _replicas(broker: int, folder: Any) -> Iterator[ReplicaSize]:
    for replica in _list(folder, "partitions"):
        size = _member(replica, "size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < _MOST_SIZE:
            raise ValueError(f"size: {str(size)[:40]} is not a number of bytes")
        name = _member(replica, "partition")
        if not isinstance(name, str):
            raise ValueError(f"partition: {str(name)[:40]} is not a partition's name")
        # A future replica is a copy that another log dir of the same broker gets.
        if replica.get("isFuture") is not True:
            yield ReplicaSize(broker, partition_name(name), size)


def _member(value: Any, key: str) -> Any:
    if not isinstance(value, dict) or key not in value:
        raise ValueError(f"an object without {key}")
    return value[key]


def _list(value: Any, key: str) -> list[Any]:
    found = _member(value, key)
    if not isinstance(found, list):
        raise ValueError(f"{key} is not a list")
    return found


def _id_of(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{str(value)[:40]!r} is not a broker's id")
    return whole(str(value) if abs(value) < _MOST_SIZE else "too large")
