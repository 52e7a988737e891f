"""The input and output of `kafka-reassign-partitions`: plans, --generate, --execute, --list and --verify. Pure."""

import re
from collections import Counter
from dataclasses import dataclass, field

from testbed.errors import UsageError
from testbed.incidents.evidence_text import EvidenceText, JsonBlock, SourceLine, broker_ids, id_list, partition_name
from testbed.incidents.tool_output import DescribedPartition
from testbed.kafka.types import Reassignment, TopicPartition
from testbed.reassignment.plan import Plan
from testbed.reassignment.plan_file import plan_from_json

REASSIGN = "kafka-reassign-partitions"
_CURRENT = "Current partition replica assignment"
_NOTHING_RUNS = "No partition reassignments found."
_STATUS = "Status of partition reassignment"
_LISTED = re.compile(
    r"(?P<tp>\S+): replicas: (?P<replicas>[^.]*)\."
    r"(?: adding: (?P<adding>[^.]*)\.)?(?: removing: (?P<removing>[^.]*)\.)?"
)
_VERIFIED = re.compile(
    r"Reassignment of partition (?:\[[^\]]*\]|\S+) "
    r"(?:(?P<complete>is completed?|completed successfully)|(?P<running>is (?:still )?in progress)|(?P<failed>failed))"
    r"\.?"
)
_REPLACED = re.compile(
    r"There is no active reassignment of partition (?P<tp>\[[^\]]*\]|\S+), "
    r"but replica set is (?P<now>[\d, ]*) rather than (?P<target>[\d, ]*)\."
)
_THROTTLE_SET = re.compile(r"The (?:inter-broker )?throttle limit was set to (?P<rate>\d{1,19}) B/s\.?")
_COPY = f"copy the whole output of {REASSIGN}"


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """The replicas that a JSON object gives to one partition, and where it stands."""

    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None
    place: SourceLine


@dataclass(slots=True)
class ReassignmentReport:
    """What files say of reassignments: plans, the placement before them, and what --list and --verify printed."""

    planned: dict[TopicPartition, PlannedTarget] = field(default_factory=dict)
    current: dict[TopicPartition, PlannedTarget] = field(default_factory=dict)
    listed: dict[TopicPartition, DescribedPartition] = field(default_factory=dict)
    verified: Counter[str] = field(default_factory=Counter)
    """State by --verify (complete, running, failed or replaced) → in how many lines."""
    replaced: list[str] = field(default_factory=list)
    """The lines about moves that were replaced, in sentences with their places."""
    throttles: list[int] = field(default_factory=list)
    """The rates in B/s that --execute set, in the order of the files."""
    repeated: list[str] = field(default_factory=list)
    """Placements that --execute printed again while the move ran, in sentences with their places."""

    def plan(self) -> Plan | None:
        """Return the plan of all files together, or None when there is none."""
        if not self.planned:
            return None
        targets = {tp: each.replicas for tp, each in self.planned.items()}
        return Plan(targets, {tp: each.log_dirs for tp, each in self.planned.items() if each.log_dirs is not None})

    def add_block(self, block: JsonBlock, problems: list[str]) -> bool:
        """Add a plan or a placement; return whether the JSON object is one."""
        if "partitions" not in block.value or "brokers" in block.value:
            return False
        # The lines before the object stay, empty: so the error has the line of the file.
        text = "\n" * (block.place.line - 1) + block.text
        try:
            plan = plan_from_json(text, block.place.file)
        except UsageError as error:
            problems += str(error).split("\n")
            return True
        into = self.current if block.heading == _CURRENT else self.planned
        for tp, replicas in plan.targets.items():
            here = PlannedTarget(replicas, plan.log_dirs.get(tp), block.place)
            other = into.setdefault(tp, here)
            if other.replicas == replicas:
                continue
            if into is self.current and other.place.file == block.place.file:
                # --execute again, such as with another --throttle: it prints the replicas of that time.
                self.repeated.append(
                    f"{block.place}: {tp} has the replicas {id_list(replicas)}; those in {other.place} count, which "
                    f"stand first: {id_list(other.replicas)}"
                )
            else:
                problems.append(
                    f"{block.place}: {tp} has the replicas {id_list(replicas)}, and {id_list(other.replicas)} in "
                    f"{other.place}; give one of them: a rollback's plan has the placement before the move"
                )
        return True

    def add_lines(self, text: EvidenceText, problems: list[str]) -> bool:
        """Add what --list and --verify printed; return whether the text has any of it."""
        recognised = False
        markers = (": replicas: ", "eassignment of partition ", "throttle limit was set to", _NOTHING_RUNS, _STATUS)
        for place, line in text.lines_with(*markers):
            stripped = line.strip()
            try:
                if listed := _LISTED.fullmatch(stripped):
                    self._list(listed, place, problems)
                elif found := _VERIFIED.fullmatch(stripped):
                    self.verified.update(state for state, said in found.groupdict().items() if said)
                elif found := _REPLACED.fullmatch(stripped):
                    tp, target = partition_name(found["tp"]), id_list(broker_ids(found["target"]))
                    self.replaced.append(f"{place}: no reassignment of {tp} runs, and its replicas are not {target}")
                    self.verified["replaced"] += 1
                elif found := _THROTTLE_SET.fullmatch(stripped):
                    self.throttles.append(int(found["rate"]))
                elif stripped.rstrip(":") not in (_NOTHING_RUNS, _STATUS):
                    continue
            except ValueError as error:
                problems.append(f"{place}: {error}; {_COPY}")
            recognised = True
        return recognised

    def _list(self, line: re.Match[str], place: SourceLine, problems: list[str]) -> None:
        tp, replicas = partition_name(line["tp"]), broker_ids(line["replicas"])
        adding, removing = broker_ids(line["adding"] or ""), broker_ids(line["removing"] or "")
        # Brokers list the adding replicas among all; other servers of the protocol need not.
        replicas = (*(broker for broker in adding if broker not in replicas), *replicas)
        running = Reassignment(replicas, adding, removing)
        if not running.target:
            raise ValueError(f"{tp} has no replicas after its move")
        other = self.listed.setdefault(tp, DescribedPartition.of_replicas(tp, replicas, running, place)).running
        if other is not None and {*other.target} != {*running.target}:
            problems.append(
                f"{place}: {tp} moves to {id_list(running.target)}, and to {id_list(other.target)} in "
                f"{self.listed[tp].place}; give the list of one time"
            )
