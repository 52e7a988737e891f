"""A capture of a cluster from files: the outputs of Kafka's tools, and the logs of its brokers. Pure.

What no file says is assumed, and a note names the assumption and the tool whose output shows it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from results.contract.texts import counted, plural
from testbed.errors import UsageError
from testbed.incidents.broker_logs import LoggedMove
from testbed.incidents.capture import (
    KEPT_CONFIGS,
    CapturedCluster,
    CapturedTopic,
    left_out,
    listed_only,
    log_dir_notes,
    lowest_rate,
    refuse_empty,
    refuse_internal,
    refuse_large,
    replicas_before,
)
from testbed.incidents.cluster_evidence import ClusterEvidence
from testbed.incidents.evidence_text import EvidenceError, id_list
from testbed.incidents.move_timeline import in_logged_time
from testbed.incidents.reassignment_output import REASSIGN
from testbed.incidents.tool_output import API_VERSIONS, CONFIGS, LOG_DIRS, TOPICS, DescribedPartition
from testbed.kafka.types import BrokerConfigs, ConfigResource, TopicPartition, is_internal
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import EVERY_BROKER, FOLLOWER_RATE, LEADER_RATE

ASSUMED_BYTES = 100_000_000
"""Of a partition whose size no file says."""
NO_LOAD = (
    "what clients write is not in these files, so the replay has no load: a capture with --bootstrap, or the brokers' "
    "metric BytesInPerSec, shows it"
)
_NUMBERS = {
    "min.insync.replicas": (1, 2**31),
    "segment.bytes": (1, 2**31),
    "retention.ms": (-1, 2**63),
}


@dataclass(frozen=True, slots=True)
class FileCapture:
    """The captured cluster, and remarks on the files for the user alone, which name files and topics."""

    cluster: CapturedCluster
    remarks: tuple[str, ...]


def captured_files(evidence: ClusterEvidence, *, plan: Plan | None = None, topics: Sequence[str] = ()) -> FileCapture:
    """Return the capture of the files: of these topics, or else of the moving ones, or of all when none moves.

    `plan` replaces every other source of moves. Raise `UsageError` when the files contradict each other, lack the
    placement of what moves, or have no move that can be captured.
    """
    return _Assembly(evidence, plan).capture(topics)


class _Assembly:
    """One capture in the making."""

    def __init__(self, evidence: ClusterEvidence, plan: Plan | None) -> None:
        self._evidence = evidence
        self._remarks = list(evidence.remarks)
        self._notes: list[str] = []
        self._moves = evidence.logs.moves()
        self._newest = {move.tp: move for move in self._moves}  # of a partition's moves the one that began last
        self._given = plan
        self._plan = plan or evidence.reassignments.plan()
        self._placed = self._placements()
        self._partitions: dict[str, list[int]] = {}
        for tp in sorted(self._placed):
            self._partitions.setdefault(tp.topic, []).append(tp.partition)
        self._sizes = evidence.log_dirs.size_bytes

    def capture(self, topics: Sequence[str]) -> FileCapture:
        if not self._placed:
            raise EvidenceError([f"no file has the replicas of a partition; add the output of {TOPICS}"])
        targets = self._targets(topics)
        wanted = self._wanted(targets, topics)
        captured = {name: self._topic(name, targets) for name in wanted}
        if targets and not any(each.moves for each in captured.values()):
            raise EvidenceError(
                [
                    "the moves change nothing: the files have the placement after them; add that before them, which "
                    "kafka-reassign-partitions --execute prints, or an older output of kafka-topics --describe"
                ]
            )
        brokers = self._brokers(captured)
        refuse_large(len(brokers), sum(len(each.replicas) for each in captured.values()))
        throttle = self._throttle(brokers)
        if throttle is not None:
            captured |= listed_only(self._described_moves(captured), self._evidence.lists, self._notes)
        self._note_log_dirs(captured)
        self._note_reassignments()
        cluster = CapturedCluster(brokers, captured, throttle, tuple(self._notes))
        cluster = in_logged_time(cluster, self._evidence.logs, self._moves)
        releases = tuple(sorted(self._evidence.logs.releases))
        return FileCapture(replace(cluster, notes=(*cluster.notes, NO_LOAD), releases=releases), tuple(self._remarks))

    def _placements(self) -> dict[TopicPartition, DescribedPartition]:
        """Return the replicas of each partition: described, or else printed before a move, or else logged."""
        report = self._evidence.reassignments
        only_replicas = DescribedPartition.of_replicas
        placed = {
            tp: only_replicas(tp, move.before, None, move.place)
            for tp, move in self._newest.items()
            if move.before is not None
        }
        placed |= {tp: only_replicas(tp, each.replicas, None, each.place) for tp, each in report.current.items()}
        placed |= self._evidence.partitions
        for tp, listed in report.listed.items():
            placed[tp] = replace(placed.get(tp, listed), running=listed.running)
        return placed

    def _targets(self, topics: Sequence[str]) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas that partitions move to: by the plan, or else what runs, or else what logs have."""
        running = {tp: each.running.target for tp, each in self._placed.items() if each.running is not None}
        report = self._evidence.reassignments
        if self._plan is not None:
            refuse_empty(self._plan)
            self._check_plan(self._plan, topics)
            for tp in sorted(running.keys() & self._plan.targets.keys()):
                target = self._plan.targets[tp]
                if {*target} != {*running[tp]}:
                    place, runs_to = self._placed[tp].place, id_list(running[tp])
                    self._remarks.append(f"{place}: {tp} runs to {runs_to}; the plan counts: {id_list(target)}")
            if others := len(running.keys() - self._plan.targets.keys()):
                self._notes.append(
                    f"{others} reassignments run that are not in the plan; the replay does not have them"
                )
            if self._given is not None and report.planned:
                self._remarks.append(f"{len(report.planned)} targets in the files do not count: --plan replaces them")
            return dict(self._plan.targets)
        return running or self._logged_targets()

    def _logged_targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the targets of the newest logged reassignments, of topics whose partitions are all described."""
        logged = {
            tp: target
            for tp, move in self._newest.items()
            if tp in self._placed and (target := self._logged_target(tp, move))
        }
        described = {tp.topic for tp in (*self._evidence.partitions, *self._evidence.reassignments.current)}
        whole = {topic for topic in described & {tp.topic for tp in logged} if self._incomplete(topic) is None}
        # Without any such topic, the refusal says what each of them lacks.
        targets = {tp: target for tp, target in logged.items() if tp.topic in whole} or logged
        if unknown := len(self._newest) - len(targets):
            moves = plural(unknown, "move")
            self._notes.append(f"the files do not have all replicas of {moves} in the logs: without these")
        return targets

    def _check_plan(self, plan: Plan, topics: Sequence[str]) -> None:
        """Raise `EvidenceError` for a partition that the plan moves and no file describes."""
        planned = self._evidence.reassignments.planned if self._given is None else {}
        asked = [tp for tp in sorted(plan.targets) if not is_internal(tp.topic)]
        if unknown := [tp for tp in asked if tp not in self._placed and (not topics or tp.topic in topics)]:
            raise EvidenceError(
                f"{planned[tp].place if tp in planned else '--plan'}: it moves {tp}, and no file describes that "
                f"partition; add the output of {TOPICS}, or make a new plan"
                for tp in unknown
            )

    def _logged_target(self, tp: TopicPartition, move: LoggedMove) -> tuple[int, ...] | None:
        if move.target is not None:
            return move.target
        stay = tuple(broker for broker in self._placed[tp].state.replicas if broker not in move.removing)
        return (*stay, *sorted(move.adding - {*stay})) or None

    def _wanted(self, targets: Mapping[TopicPartition, tuple[int, ...]], topics: Sequence[str]) -> list[str]:
        """Return the topics of the capture, each with all its partitions."""
        names = sorted(self._partitions)
        if unknown := sorted({*topics} - {*names}):
            raise UsageError(f"no file describes the topic {', '.join(unknown)}; add the output of {TOPICS}")
        refuse_internal(topics)
        chosen = {*topics} or {tp.topic for tp in targets} or {*names}
        wanted = [name for name in names if name in chosen and not is_internal(name)]
        self._notes += left_out(targets.keys(), wanted)
        if headless := sum(name not in self._evidence.topics for name in wanted):
            self._notes.append(
                f"how many partitions {counted(headless, 'topic', 'has')} is not in these files, and the greatest "
                f"number that they name is assumed to be the last: {TOPICS} shows it"
            )
        if problems := [problem for name in wanted if (problem := self._incomplete(name))]:
            raise EvidenceError(problems)
        return wanted

    def _incomplete(self, name: str) -> str | None:
        """Return why the partitions of a topic cannot be captured, or None when all are there."""
        numbers = self._partitions[name]
        head = self._evidence.topics.get(name)
        place = head.place if head is not None else self._placed[TopicPartition(name, numbers[0])].place
        count = head.partitions if head is not None else numbers[-1] + 1
        if len(numbers) == count == numbers[-1] + 1:
            return None
        return (
            f"{place}: {name} has {count} partitions, and the files have the replicas of {len(numbers)}; give the "
            f"whole output of {TOPICS} --topic {name}"
        )

    def _topic(self, name: str, targets: Mapping[TopicPartition, tuple[int, ...]]) -> CapturedTopic:
        tps = [TopicPartition(name, number) for number in self._partitions[name]]
        before = tuple(self._before(tp, targets.get(tp)) for tp in tps)
        after = tuple(None if targets.get(tp) == was else targets.get(tp) for tp, was in zip(tps, before, strict=True))
        size_bytes = tuple(self._sizes.get(tp, ASSUMED_BYTES) for tp in tps)
        return CapturedTopic(before, after, size_bytes, (0.0,) * len(tps), self._configs(name))

    def _before(self, tp: TopicPartition, target: tuple[int, ...] | None) -> tuple[int, ...]:
        """Return the replicas before the move; the files may have those after it, or those while it runs."""
        placed, move = self._placed[tp], self._newest.get(tp)
        described = placed.state.replicas
        if placed.running is not None:
            return replicas_before(placed.state, placed.running) or described
        if target is None:
            return described
        current = self._evidence.reassignments.current.get(tp)
        fits = move is not None and (move.target is None or {*move.target} == {*target})
        logged = move.before if move is not None and fits else None
        if {*described} == {*target}:
            for earlier in (None if current is None else current.replicas, logged):
                if earlier is not None and {*earlier} != {*target}:
                    return earlier
        elif logged is not None and {*described} == {*logged, *target} != {*logged}:
            return logged
        elif current is not None and {*current.replicas} != {*described}:
            self._remarks.append(
                f"{current.place}: {tp} had the replicas {id_list(current.replicas)}, and {id_list(described)} in "
                f"{placed.place}, which count"
            )
        return described

    def _described_moves(self, captured: Mapping[str, CapturedTopic]) -> dict[str, CapturedTopic]:
        """Return the topics that kafka-topics described while they moved: with it are the lists of that time."""
        described = {tp for tp, each in self._evidence.partitions.items() if each.running is not None}
        return {
            name: topic
            for name, topic in captured.items()
            if name in self._evidence.topics
            and {TopicPartition(name, at) for at, to in enumerate(topic.targets) if to is not None} <= described
        }

    def _configs(self, name: str) -> dict[str, str]:
        """Return the settings that a replay needs. A value that Kafka would refuse is left out with a remark."""
        head, own = self._evidence.topics.get(name), self._evidence.configs.get(ConfigResource.topic(name))
        values = {**(head.configs if head is not None else {}), **(own.values if own is not None else {})}
        configs: dict[str, str] = {}
        for key in KEPT_CONFIGS:
            if key not in values:
                continue
            least, most = _NUMBERS.get(key, (0, 0))
            if most and not (_whole(values[key]) and least <= int(values[key]) < most):
                self._remarks.append(f"{name}: {key} is {values[key][:40]!r}, which is no such value: without it")
            else:
                configs[key] = values[key]
        return configs

    def _brokers(self, captured: Mapping[str, CapturedTopic]) -> dict[int, str | None]:
        """Return every broker that files name, with its rack."""
        report = self._evidence
        # By the tool, or else by the last log line.
        racks = {**report.logs.racks, **{each.broker: each.rack for each in report.racks.values()}}
        ids = {int(owner.name) for owner in report.configs if owner.kind == "broker" and owner.name}
        ids |= report.log_dirs.brokers | {*report.racks}
        for each in report.partitions.values():
            ids |= {*each.state.replicas}
        for topic in captured.values():
            ids |= {broker for hosts in (*topic.replicas, *topic.targets) for broker in hosts or ()}
        if unknown := ids - {*racks}:
            self._notes.append(
                f"the racks of {plural(len(unknown), 'broker')} are not in these files, and one rack is assumed: "
                f"{API_VERSIONS} shows it"
            )
        return {broker: racks.get(broker) for broker in sorted(ids)}

    def _throttle(self, brokers: Mapping[int, str | None]) -> int | None:
        """Return the lowest rate in B/s, or None."""
        configs = {owner: each for owner, each in self._evidence.configs.items() if owner.kind == "broker"}
        if not configs:
            if printed := self._evidence.reassignments.throttles:
                self._notes.append(
                    f"the throttle is the one that {REASSIGN} set last; whether the brokers still had it, {CONFIGS} "
                    "shows it"
                )
                return lowest_rate([str(printed[-1])], self._notes)
            self._notes.append(f"no file has the brokers' rates, so the replay has no throttle: {CONFIGS} shows it")
            return None
        default = configs[EVERY_BROKER].values if EVERY_BROKER in configs else {}
        rates: list[str | None] = []
        for broker in brokers:
            own = configs.get(ConfigResource.broker(broker))
            in_force = BrokerConfigs(own.values if own is not None else {}, default)
            rates += [in_force.in_force(key) for key in (LEADER_RATE, FOLLOWER_RATE)]
        if wrong := Counter(rate for rate in rates if rate is not None and not _whole(rate)):
            self._remarks.append(f"{', '.join(sorted(wrong))[:80]!r} is no rate in B/s: without it")
        return lowest_rate([rate for rate in rates if rate is None or _whole(rate)], self._notes)

    def _note_log_dirs(self, captured: Mapping[str, CapturedTopic]) -> None:
        tps = [TopicPartition(name, number) for name in captured for number in self._partitions[name]]
        if unknown := sum(tp not in self._sizes for tp in tps):
            self._notes.append(
                f"the sizes of {plural(unknown, 'partition')} are not in these files, and "
                f"{ASSUMED_BYTES // 10**6} MB each are assumed: {LOG_DIRS} shows it"
            )
        errors = self._evidence.log_dirs.errors
        for broker, error, place in errors:
            self._remarks.append(f"{place}: a log dir of broker {broker} has the error {error!r}")
        if errors:
            self._notes.append(f"{len(errors)} log dirs had an error; the replay has them whole")

    def _note_reassignments(self) -> None:
        self._remarks += [*self._evidence.reassignments.replaced, *self._evidence.reassignments.repeated]
        if states := self._evidence.reassignments.verified:
            counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
            self._notes.append(f"when --verify ran, the moves were: {counts}")
        self._notes += [] if self._plan is None else log_dir_notes(self._plan)


def _whole(text: str) -> bool:
    return len(text) < 20 and text.removeprefix("-").isdecimal() and text.isascii()
