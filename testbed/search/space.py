"""The space of incidents that a search draws from: declared ranges, and the faults of the catalogue.

A kind of fault is drawn by what it declares: each parameter's parser, and its check of the topology.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, replace
from typing import Any

from testbed.errors import UsageError
from testbed.faults.fault import Fault
from testbed.faults.parse import kinds, parameters, parse_fault
from testbed.faults.processes import ProcessFault
from testbed.search.draft import Draft, DrawnStep, DrawnTopic
from testbed.topology.model import Topology

FILLED, LOADED = "orders", "clicks"
VALUES = (
    *("20mbit", "50mbit", "200mbit", "500kB/s", "1MB/s", "none", "0.2", "0.5", "400ms", "500ms", "1s", "2s", "5s"),
    *("10%", "1%", "20%", "16MB", "64MB", "256MB", "512MB", "1GB", "1", "2", "leader", "follower", "transmit"),
    *("receive", "both"),
)
"""Values for a fault's parameters. A parameter takes those that its parser accepts."""
ACTIONS = (
    *("move", "cancel", "cancel", "change_throttle", "change_throttle", "set_throttle", "restart", "restart"),
    "elect_preferred",
)
"""The operator's actions; one that is listed twice comes twice as often."""
TRIES = 40
SHARES = (5, 10, 20, 30, 50, 70, 90, 100)
PROCESS_WEIGHT = 3
"""So often comes a fault of a broker's process for one of another kind: more of a broker's state depends on it."""
# The ranges. A list is drawn from evenly; a value that is listed twice comes twice as often.
PARTITIONS = (2, 4, 6)
KILOBYTES = (8_000, 24_000, 32_000, 48_000)
REPLICAS = (1, 1, 2, 2, 2, 2, 2, 3)
LOAD_KB_PER_S = (0, 200, 400, 800)
ORDER_SHARE = 0.1
RESIZED_SHARE = 0.3
"""Of the moves, those that give a topic one replica more or one less."""
MOVE_S: Sequence[float | None] = (None, 6.0, 20.0, 30.0, 30.0, 60.0, 60.0)
"""How long the throttle makes the copy of a filled topic take; None: no throttle.

A broker that has not copied for a while lets 12 s of the rate through at once, so a copy of 6 s ends within a second.
Only a longer one shows a throttle that does not hold: the bound of 11 s is less than all of its bytes. The calm
removes the throttle, so that a long copy ends, too.
"""
RATE_KB_PER_S = (250, 500, 1000, 4000, 16_000)
MORE_STEPS = (0, 1, 1, 2, 2, 3)
FAULT_SHARE = 0.5
MOVES_BEGIN_S = 1.0
RESTARTED_S = 8.0
"""So much later begins the first move after a step that restarts a broker before it: the broker serves again."""
STEPS_S = 7.0
"""Seconds after the first move's begin in which steps begin."""
FAULT_S = (0.5, 1.0, 2.0, 4.0, 8.0)
QUIET_S = 4.0
"""Seconds from the last step to the calm, in which a move may go on."""


@dataclass(frozen=True)
class Space:
    """What a search may draw for a topology, of these kinds of fault, or (None) of all that it can have here."""

    name: str
    topology: Topology
    fault_kinds: tuple[str, ...] | None = None

    @property
    def brokers(self) -> list[str]:
        """Return the names of the brokers."""
        return [host.name for host in self.topology.brokers]

    def faults(self) -> dict[str, type[Fault]]:
        """Return the kinds of fault that are drawn: by default all that this topology can have here.

        A search that is continued draws the same, also where the machine cannot have one of them any more.
        """
        if self.fault_kinds is not None:
            return {name: kind for name, kind in kinds().items() if name in self.fault_kinds}
        rng = random.Random(0)
        here = {name: kind for name, kind in kinds().items() if not kind.unavailable(self.topology, {})}
        return {name: kind for name, kind in here.items() if draw_fault(kind, self.topology, rng) is not None}

    def draw(self, rng: random.Random, faults: Mapping[str, type[Fault]]) -> Draft:
        """Return a random incident: a move, and other actions and faults before, during and after it."""
        topics = {FILLED: self._topic(rng, rng.choice(KILOBYTES)), LOADED: self._topic(rng, 0)}
        moved = rng.choice(([FILLED], [FILLED], [FILLED, LOADED], [FILLED, LOADED], [LOADED]))
        seconds = rng.choice(MOVE_S)
        steps = [self._move(rng, moved, topics, MOVES_BEGIN_S, seconds)]
        for _number in range(rng.choice(MORE_STEPS)):
            # One fault of a kind: healing names the kind, and would end another one of it, too.
            drawn = {step.action.replace("_", "-") for step in steps}
            left = {name: kind for name, kind in faults.items() if name not in drawn}
            steps.append(self._another(rng, topics, left, self._time(rng, seconds)))
        restarted = any(_restarts(step, faults) and step.share is None and step.at_s < MOVES_BEGIN_S for step in steps)
        later_s = RESTARTED_S if restarted else 0.0
        steps = [replace(step, at_s=step.at_s + later_s) if step.at_s >= MOVES_BEGIN_S else step for step in steps]
        steps.sort(key=lambda step: (step.share or 0, step.at_s))
        calm_s = MOVES_BEGIN_S + later_s + STEPS_S + QUIET_S
        return Draft(self.name, topics, rng.choice(LOAD_KB_PER_S), tuple(steps), calm_s)

    def _topic(self, rng: random.Random, kilobytes: int) -> DrawnTopic:
        replicas = min(rng.choice(REPLICAS), len(self.brokers))
        hosts = tuple(rng.sample(self.brokers, replicas))
        return DrawnTopic(rng.choice(PARTITIONS), hosts, kilobytes, rng.randint(1, replicas))

    def _move(
        self,
        rng: random.Random,
        moved: Sequence[str],
        topics: Mapping[str, DrawnTopic],
        at_s: float,
        seconds: float | None,
    ) -> DrawnStep:
        now = topics[moved[0]].hosts
        replicas = len(now)
        if rng.random() < RESIZED_SHARE:
            replicas += rng.choice((-1, 1))
        # With fewer replicas than min.insync.replicas no producer could write.
        least = max(topics[name].least_in_sync for name in moved)
        replicas = min(max(replicas, least), len(self.brokers))
        hosts = tuple(rng.sample(self.brokers, replicas))
        # Most moves copy something; one in so many changes the order of the replicas alone.
        while set(hosts) == set(now) and len(now) < len(self.brokers) and rng.random() > ORDER_SHARE:
            hosts = tuple(rng.sample(self.brokers, replicas))
        given: dict[str, Any] = {"topics": list(moved), "hosts": list(hosts)}
        if seconds is not None:
            given["throttle"] = f"{round(topics[FILLED].kilobytes / seconds, -2):.0f}kB/s"
        return DrawnStep("move", given, at_s)

    def _another(
        self,
        rng: random.Random,
        topics: Mapping[str, DrawnTopic],
        faults: Mapping[str, type[Fault]],
        when: tuple[float, int | None],
    ) -> DrawnStep:
        at_s, share = when
        if faults and rng.random() < FAULT_SHARE:
            names = sorted(faults)
            weights = [PROCESS_WEIGHT if issubclass(faults[name], ProcessFault) else 1 for name in names]
            (name,) = rng.choices(names, weights)
            given = draw_fault(faults[name], self.topology, rng)
            if given is not None:
                return DrawnStep(name.replace("-", "_"), given, at_s, share, rng.choice(FAULT_S))
        rate = f"{rng.choice(RATE_KB_PER_S)}kB/s"
        action = rng.choice(ACTIONS)
        if action == "move":
            moved = self._move(rng, [rng.choice(list(topics))], topics, at_s, rng.choice(MOVE_S))
            return replace(moved, share=share)
        rated = {"rate": rate}
        given_to = {"change_throttle": rated, "set_throttle": rated, "restart": {"host": rng.choice(self.brokers)}}
        return DrawnStep(action, given_to.get(action, {}), at_s, share)

    def _time(self, rng: random.Random, seconds: float | None) -> tuple[float, int | None]:
        """Return a time or a share of the move: before it, during it, or when it is done.

        Of a move that takes `seconds`, only a share that arrives before the calm.
        """
        arriving = [share for share in SHARES if (seconds or 0) * share / 100 < STEPS_S]
        which = rng.random()
        if which < 0.2:
            return 0.0, None
        if which < 0.45:
            return 0.0, rng.choice([share for share in arriving if share < 100])
        if which < 0.55 and 100 in arriving:
            return 0.0, 100
        return round(rng.uniform(MOVES_BEGIN_S, MOVES_BEGIN_S + STEPS_S), 1), None


def _restarts(step: DrawnStep, faults: Mapping[str, type[Fault]]) -> bool:
    """Return whether a step acts on a broker's process, which then begins from what its disk has."""
    return step.action == "restart" or (step.is_fault and issubclass(faults[step.kind], ProcessFault))


def draw_fault(kind: type[Fault], topology: Topology, rng: random.Random) -> dict[str, str] | None:
    """Return parameters with which the topology can have a fault of this kind; None when no draw gave any."""
    fields = parameters(kind)
    values = {each.name: list(_values(each, topology)) for each in fields}
    if any(not values[each.name] and each.default is MISSING for each in fields):
        return None
    for _try in range(TRIES):
        texts = {
            each.name: rng.choice(values[each.name])
            for each in fields
            if each.default is MISSING or (values[each.name] and rng.random() < 0.3)
        }
        try:
            parse_fault(" ".join([kind.kind, *(f"{name}={text}" for name, text in texts.items())])).check(topology)
        except (UsageError, ValueError):
            continue
        return texts
    return None


def _values(parameter: "Field[Any]", topology: Topology) -> Iterator[str]:
    """Yield the texts that a parameter may take: names of the topology where it is a name, else of `VALUES`."""
    names = [host.name for host in topology.hosts] + list(topology.racks)
    yield from (text for text in names if _accepts(parameter, text))
    if not _accepts(parameter, "an unlikely name"):
        yield from (text for text in VALUES if _accepts(parameter, text))


def _accepts(parameter: "Field[Any]", text: str) -> bool:
    try:
        parameter.metadata["parse"](text)
    except (UsageError, ValueError):
        return False
    return True
