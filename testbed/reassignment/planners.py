"""Planners: they compute plans that copy as little as possible. Pure.

A plan holds only the partitions that it changes. A partition's leader stays unless its broker leaves, or the user
spreads the leaders.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from results.contract.texts import counted, plural, shortened
from testbed.kafka.types import PartitionMove, TopicPartition
from testbed.reassignment.plan import Plan, PlanError, move_ratio

Replicas = tuple[int, ...]
Assignment = Mapping[TopicPartition, Replicas]
Racks = Mapping[int, str | None]


class Placement:
    """An assignment while a planner changes it. Only brokers of `racks` receive replicas."""

    def __init__(self, assignment: Assignment, racks: Racks) -> None:
        self.replicas: dict[TopicPartition, list[int]] = {tp: list(r) for tp, r in sorted(assignment.items())}
        self._rack = {broker: rack if rack is not None else f"broker {broker}" for broker, rack in racks.items()}
        self.brokers = tuple(sorted(racks))
        self._racks = len(set(self._rack.values()))
        self.count = Counter(broker for replicas in self.replicas.values() for broker in replicas)
        self.led = Counter(replicas[0] for replicas in self.replicas.values() if replicas)

    def crowding(self, tp: TopicPartition, broker: int, without: int | None = None) -> int:
        """Return how many replicas beyond its fair share a broker's rack would hold with one more on this broker.

        `without` is a replica that the change removes.
        """
        others = [other for other in self.replicas[tp] if other != without]
        share = math.ceil((len(others) + 1) / self._racks)
        mine = sum(self._rack.get(other) == self._rack[broker] for other in others) + 1
        return max(0, mine - share)

    def crowded(self, tp: TopicPartition) -> bool:
        """Return whether a rack holds more than its fair share of a partition's replicas."""
        held = Counter(self._rack[broker] for broker in self.replicas[tp] if broker in self._rack)
        return bool(held) and max(held.values()) > math.ceil(len(self.replicas[tp]) / self._racks)

    def best(self, tp: TopicPartition, without: int | None = None) -> int | None:
        """Return the broker for one more replica: least crowding first, then fewest replicas, then the lowest id."""
        free = [broker for broker in self.brokers if broker not in self.replicas[tp]]
        return min(free, key=lambda b: (self.crowding(tp, b, without), self.count[b], b), default=None)

    def add(self, tp: TopicPartition, broker: int) -> None:
        """Append a replica."""
        self.replicas[tp].append(broker)
        self.count[broker] += 1
        if len(self.replicas[tp]) == 1:
            self.led[broker] += 1

    def remove(self, tp: TopicPartition, broker: int) -> None:
        """Remove a replica."""
        self._reorder(tp, [other for other in self.replicas[tp] if other != broker])
        self.count[broker] -= 1

    def replace(self, tp: TopicPartition, old: int, new: int) -> None:
        """Replace a replica by another, at the same position."""
        self._reorder(tp, [new if broker == old else broker for broker in self.replicas[tp]])
        self.count[old] -= 1
        self.count[new] += 1

    def lead(self, tp: TopicPartition, broker: int) -> None:
        """Make one of its replicas a partition's preferred leader."""
        self._reorder(tp, [broker, *(other for other in self.replicas[tp] if other != broker)])

    def changed(self, before: Assignment) -> dict[TopicPartition, Replicas]:
        """Return the partitions whose replicas differ from those before."""
        now = {tp: tuple(replicas) for tp, replicas in self.replicas.items()}
        return {tp: replicas for tp, replicas in now.items() if replicas != before[tp]}

    def _reorder(self, tp: TopicPartition, replicas: list[int]) -> None:
        if self.replicas[tp]:
            self.led[self.replicas[tp][0]] -= 1
        if replicas:
            self.led[replicas[0]] += 1
        self.replicas[tp] = replicas


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of a plan: partitions that change (`of` how many), replicas and bytes to copy, leaders that move."""

    partitions: int
    of: int
    replicas: int
    bytes: int
    leaders: int

    @property
    def move_ratio(self) -> float:
        """Return KIP-73's MoveRatio."""
        return move_ratio(self.partitions, self.of) if self.of else 0.0


def cost(plan: Plan, assignment: Assignment, sizes: Mapping[TopicPartition, int]) -> PlanCost:
    """Return the cost of a plan; `sizes` are bytes of one replica, 0 for partitions without a size."""
    moves = [PartitionMove.between(tp, assignment[tp], target) for tp, target in plan.targets.items()]
    return PlanCost(
        partitions=len(moves),
        of=len(assignment),
        replicas=sum(len(move.adding) for move in moves),
        bytes=sum(len(move.adding) * sizes.get(move.tp, 0) for move in moves),
        leaders=sum(move.current[:1] != move.target[:1] for move in moves),
    )


def drain(assignment: Assignment, racks: Racks, leaving: Collection[int]) -> Plan:
    """Return the plan that moves every replica off the leaving brokers. Racks are a preference, not a guarantee.

    Raise `PlanError` when a broker is unknown, or if too few brokers remain for a partition.
    """
    _refuse_unknown(assignment, racks, leaving)
    staying = {broker: rack for broker, rack in racks.items() if broker not in leaving}
    # A dead broker that does not leave keeps its replica; a partition without a leaving replica needs nothing.
    leaves = {tp: replicas for tp, replicas in assignment.items() if not set(replicas).isdisjoint(leaving)}
    _refuse_few(leaves, lambda tp: len({*staying, *leaves[tp]} - set(leaving)), lambda tp: len(leaves[tp]))
    placement = Placement(assignment, staying)
    for tp, replicas in assignment.items():
        for broker in replicas:
            if broker in leaving:
                new = placement.best(tp, without=broker)
                assert new is not None
                placement.replace(tp, broker, new)
    return Plan(placement.changed(assignment))


def leave(assignment: Assignment, racks: Racks, leaving: Collection[int]) -> Plan:
    """Return the plan of `drain`. A partition with more replicas than brokers remain gets one on each of these.

    Raise `PlanError` when a broker is unknown, or none remains.
    """
    _refuse_unknown(assignment, racks, leaving)
    remain = sorted(set(racks) - set(leaving))
    if not remain:
        raise PlanError("plan", ["all brokers leave: none remains for the replicas"])
    fewer = {}
    for tp, replicas in assignment.items():
        if len(replicas) > len(remain):
            staying = tuple(broker for broker in replicas if broker in remain)
            fewer[tp] = (*staying, *(broker for broker in remain if broker not in staying))
    rest = {tp: replicas for tp, replicas in assignment.items() if tp not in fewer}
    left = {broker for replicas in rest.values() for broker in replicas} | set(racks)
    return Plan({**fewer, **drain(rest, racks, left & set(leaving)).targets})


def add(assignment: Assignment, racks: Racks, joining: Collection[int]) -> Plan:
    """Return the plan that gives joining brokers their fair share of replicas and leaders, from the fullest brokers.

    Raise `PlanError` when a joining broker is unknown.
    """
    if unknown := sorted(set(joining) - set(racks)):
        problems = [f"broker {broker} is not among the live brokers {sorted(racks)}" for broker in unknown]
        raise PlanError("plan", problems)
    placement = Placement(assignment, racks)
    _level(placement, joining)
    _level_leaders(placement, joining)
    return Plan(placement.changed(assignment))


def spread(assignment: Assignment, racks: Racks) -> Plan:
    """Return the plan that spreads partitions over all racks, and replicas and leaders evenly over the brokers."""
    unknown = {broker for replicas in assignment.values() for broker in replicas} - set(racks)
    start = {**assignment, **drain(assignment, racks, unknown).targets} if unknown else assignment
    placement = Placement(start, racks)
    for tp in start:
        _uncrowd(placement, tp)
    _level(placement, placement.brokers)
    _level_leaders(placement, placement.brokers)
    return Plan(placement.changed(assignment))


def change_factor(assignment: Assignment, racks: Racks, factor: int) -> Plan:
    """Return the plan that gives every partition `factor` replicas.

    New replicas go to the emptiest brokers; the fullest brokers lose theirs. Raise `PlanError` with too few brokers.
    """
    if factor < 1:
        raise PlanError("plan", [f"replication factor {factor}: must be 1 or more"])
    _refuse_few(assignment, lambda _tp: len(racks), lambda _tp: factor)
    placement = Placement(assignment, racks)
    for tp, replicas in assignment.items():
        while len(placement.replicas[tp]) > factor:
            # Never the first live one: no leader has to move when the planner removes a replica.
            there = placement.replicas[tp]
            leader = next((broker for broker in there if broker in racks), there[0])
            placement.remove(tp, max((b for b in there if b != leader), key=lambda b: (_rank(placement, tp, b), b)))
        for _ in range(factor - len(replicas)):
            new = placement.best(tp)
            assert new is not None
            placement.add(tp, new)
    return Plan(placement.changed(assignment))


def _rank(placement: Placement, tp: TopicPartition, broker: int) -> tuple[bool, int, int]:
    """Return the order of removal: replicas on missing brokers, in crowded racks, on full brokers."""
    absent = broker not in placement.brokers
    return absent, 0 if absent else placement.crowding(tp, broker, without=broker), placement.count[broker]


def _uncrowd(placement: Placement, tp: TopicPartition) -> None:
    """Move single replicas out of the racks that hold too many, the leader last."""
    for old in reversed(list(placement.replicas[tp])):
        if not placement.crowded(tp):
            return
        new = placement.best(tp, without=old)
        if new is not None and placement.crowding(tp, new, old) < placement.crowding(tp, old, old):
            placement.replace(tp, old, new)


def _level(placement: Placement, receivers: Collection[int]) -> None:
    """Move replicas, one at a time, from the fullest brokers to `receivers`.

    A receiver takes them until it has its fair share and no broker has two more than itself.
    """
    total = sum(placement.count[broker] for broker in placement.brokers)
    fair = total // len(placement.brokers)
    on: dict[int, set[TopicPartition]] = {broker: set() for broker in placement.brokers}
    for tp, replicas in placement.replicas.items():
        for broker in replicas:
            on.setdefault(broker, set()).add(tp)
    rank = {tp: number for number, tp in enumerate(placement.replicas)}
    # First a fair share for each, then one more where a broker still has two more: so no replica moves needlessly.
    for most, new in ((most, new) for most in (fair, fair + 1) for new in sorted(receivers)):
        offers = _Offers(placement, new, on, rank)
        while placement.count[new] < most:
            found = _giver(placement, new, fair, offers)
            if found is None:
                break
            tp, old = found
            placement.replace(tp, old, new)
            on[old].remove(tp)
            on[new].add(tp)


def _giver(placement: Placement, new: int, fair: int, offers: "_Offers") -> tuple[TopicPartition, int] | None:
    """Return a replica of the fullest broker that `new` may take over; followers before leaders."""
    for old in sorted(placement.brokers, key=lambda b: (-placement.count[b], b)):
        if placement.count[old] <= max(fair, placement.count[new] + 1):
            return None
        best = offers.next(old)
        if best is not None:
            return best, old
    return None


class _Offers:
    """The replicas that each broker can give to `new`: followers first, then in the partitions' order.

    A replica that does not fit now never fits later: a partition changes only when it goes to `new`. So the planner
    tries each replica once.
    """

    def __init__(
        self,
        placement: Placement,
        new: int,
        on: Mapping[int, Collection[TopicPartition]],
        rank: Mapping[TopicPartition, int],
    ) -> None:
        self._placement, self._new, self._on, self._rank = placement, new, on, rank
        self._left: dict[int, Iterator[TopicPartition]] = {}

    def next(self, old: int) -> TopicPartition | None:
        """Return the next replica that `new` may take over; the caller must move it now. None: no replica is left."""
        replicas, rank = self._placement.replicas, self._rank
        if old not in self._left:
            self._left[old] = iter(sorted(self._on[old], key=lambda tp: (replicas[tp][0] == old, rank[tp])))
        return next((tp for tp in self._left[old] if self._fits(tp, old)), None)

    def _fits(self, tp: TopicPartition, old: int) -> bool:
        placement, new = self._placement, self._new
        return new not in placement.replicas[tp] and (
            placement.crowding(tp, new, old) <= placement.crowding(tp, old, old)
        )


def _level_leaders(placement: Placement, receivers: Collection[int]) -> None:
    """Make `receivers` lead their fair share of their partitions: an order changes, and no data is copied."""
    fair = len(placement.replicas) / len(placement.brokers)
    for new in sorted(receivers):
        for tp, replicas in placement.replicas.items():
            if placement.led[new] > math.floor(fair):
                break
            # The old leader keeps no fewer than `new` then has, nor fewer than a fair share rounded down.
            if new in replicas and placement.led[replicas[0]] > max(math.floor(fair), placement.led[new] + 1):
                placement.lead(tp, new)


def _refuse_unknown(assignment: Assignment, racks: Racks, leaving: Collection[int]) -> None:
    known = {*racks, *(broker for replicas in assignment.values() for broker in replicas)}
    if unknown := sorted(set(leaving) - known):
        raise PlanError("plan", [f"broker {broker} is not among the brokers {sorted(known)}" for broker in unknown])


def _refuse_few(
    assignment: Assignment, brokers: Callable[[TopicPartition], int], needed: Callable[[TopicPartition], int]
) -> None:
    problems = [
        f"{tp} needs {plural(needed(tp), 'broker')}, and {counted(brokers(tp), 'broker', 'is')} left"
        for tp in assignment
        if needed(tp) > brokers(tp)
    ]
    if problems:
        raise PlanError("plan", shortened(problems, 5))
