"""The facts in the files of one cluster, by subject, with the places of contradictions. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from testbed.incidents.broker_logs import LogReport
from testbed.incidents.evidence_text import EvidenceError, EvidenceText, id_list, json_blocks
from testbed.incidents.log_layouts import has_log_lines
from testbed.incidents.reassignment_output import REASSIGN, ReassignmentReport
from testbed.incidents.tool_output import (
    API_VERSIONS,
    CONFIGS,
    LOG_DIRS,
    TOPICS,
    BrokerRack,
    DescribedPartition,
    DescribedTopic,
    EntityConfig,
    LogDirReport,
    broker_racks,
    described_topics,
    entity_configs,
)
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.throttle.configs import LISTS

KINDS = f"{TOPICS}, {CONFIGS}, {LOG_DIRS}, {REASSIGN}, {API_VERSIONS}, or a log of a broker or a controller"


@dataclass(slots=True)
class ClusterEvidence:
    """What files say. `remarks` are for the user alone: they name files and topics."""

    topics: dict[str, DescribedTopic] = field(default_factory=dict)
    partitions: dict[TopicPartition, DescribedPartition] = field(default_factory=dict)
    configs: dict[ConfigResource, EntityConfig] = field(default_factory=dict)
    lists: dict[str, dict[str, str]] = field(default_factory=dict)
    """Topic → its lists of throttled replicas. An output that has none may be older than the throttle."""
    log_dirs: LogDirReport = field(default_factory=LogDirReport)
    racks: dict[int, BrokerRack] = field(default_factory=dict)
    reassignments: ReassignmentReport = field(default_factory=ReassignmentReport)
    logs: LogReport = field(default_factory=LogReport)
    remarks: list[str] = field(default_factory=list)

    def add(self, text: EvidenceText, problems: list[str]) -> bool:
        """Add what a text says; return whether it is any of the kinds. An output may follow another one in it."""
        before = len(problems)
        is_log = self.logs.add(text)
        found = [
            is_log,
            self._add_topics(text, problems),
            self._add_configs(text, problems),
            self._add_racks(broker_racks(text)),
            self.reassignments.add_lines(text, problems),
        ]
        # Entries of a log may have JSON that is none of an operator's.
        for block in json_blocks(text, self.remarks if is_log else problems):
            found.append(self.log_dirs.add_block(block, problems) or self.reassignments.add_block(block, problems))
        return any(found) or len(problems) > before

    def _add_topics(self, text: EvidenceText, problems: list[str]) -> bool:
        topics, partitions = described_topics(text, problems)
        for topic in topics:
            self._add_lists(topic.topic, topic.configs)
            other = self.topics.setdefault(topic.topic, topic)
            if other.partitions != topic.partitions:
                problems.append(
                    f"{topic.place}: {topic.topic} has {topic.partitions} partitions, and {other.partitions} in "
                    f"{other.place}; give the output of one time"
                )
            elif dict(other.configs) != dict(topic.configs):
                self.remarks.append(f"{topic.place}: {topic.topic} has other settings in {other.place}, which count")
        for each in partitions:
            self._add_partition(each, problems)
        return bool(topics or partitions)

    def _add_partition(self, each: DescribedPartition, problems: list[str]) -> None:
        other = self.partitions.setdefault(each.state.tp, each)
        if other.place.file == each.place.file and (other.running is None) != (each.running is None):
            # One output after the other, and a move began or ended between: the one in which it runs has both ends.
            running = other if each.running is None else each
            self.partitions[each.state.tp] = running
            self.remarks.append(
                f"{each.place}: {each.state.tp} is described at another time than in {other.place}; "
                f"{running.place} counts, in which it moves"
            )
        elif (other.state.replicas, other.running) != (each.state.replicas, each.running):
            problems.append(
                f"{each.place}: {each.state.tp} has the replicas {_shown(each)}, and {_shown(other)} in {other.place}; "
                "give the output of one time: the newest before the move"
            )
        elif other.state != each.state:
            self.remarks.append(
                f"{each.place}: {each.state.tp} has another leader or ISR than in {other.place}, which counts"
            )

    def _add_configs(self, text: EvidenceText, problems: list[str]) -> bool:
        configs = entity_configs(text, problems)
        for config in configs:
            if config.owner.kind == "topic":
                self._add_lists(config.owner.name, config.values)
            other = self.configs.setdefault(config.owner, config)
            for key, value in config.values.items():
                if other.values.setdefault(key, value) != value:
                    self.remarks.append(
                        f"{config.place}: {config.owner} has another {key} than in {other.place}, which counts"
                    )
        return bool(configs)

    def _add_lists(self, topic: str, configs: Mapping[str, str]) -> None:
        self.lists.setdefault(topic, {}).update({key: configs[key] for key in LISTS if configs.get(key)})

    def _add_racks(self, racks: list[BrokerRack]) -> bool:
        for each in racks:
            other = self.racks.setdefault(each.broker, each)
            if other.rack != each.rack:
                self.remarks.append(
                    f"{each.place}: broker {each.broker} has another rack than in {other.place}, which counts"
                )
        return bool(racks)


_UNREAD_LOG = {
    False: "it is none of the outputs that are read",
    True: "it is a log, but none of its lines has a time that is read, such as 2026-01-31 12:00:00,123, and a level",
}


def _shown(described: DescribedPartition) -> str:
    replicas = id_list(described.state.replicas)
    return replicas if described.running is None else f"{replicas} (which move)"


def gathered(texts: Iterable[EvidenceText]) -> ClusterEvidence:
    """Return what the texts say. Raise `EvidenceError` with every line that cannot be read, or contradicts another."""
    evidence = ClusterEvidence()
    problems: list[str] = []
    for text in texts:
        if text.problem is None and evidence.add(text, problems):
            continue
        why = text.problem or _UNREAD_LOG[has_log_lines(text.text)]
        if text.named:
            problems.append(f"{text.file}: {why}; give the output of {KINDS}")
        else:
            evidence.remarks.append(f"{text.file} is left out: {why}")
    if problems:
        raise EvidenceError(problems)
    return evidence
