"""A drawn incident as a value, and the incident's file that it stands for. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from results.criteria.expectations import RecordsIntact, ThrottleRemoved
from results.criteria.invariants import INVARIANTS
from results.criteria.throttle_bound import ThrottleBound
from results.criteria.timeline_expectation import TimelineExpectation
from testbed.incidents.forms import format_seconds
from testbed.kafka.node import FETCH_TUNED

CALM = "calm"
CONVERGE_S, MARGIN_S = 40.0, 75.0
"""Seconds for the cluster to converge, and from the calm to the end of the replay: the heal of faults comes before."""
QUIET_S = 2.0
"""Seconds before the calm in which no more step begins to act on a condition."""
LAG_S, SESSION_S = 5, 6
RESPONSE = FETCH_TUNED["replica.fetch.response.max.bytes"]
PROPERTIES: Mapping[str, str] = {
    **FETCH_TUNED,
    "replica.lag.time.max.ms": str(LAG_S * 1000),
    "broker.session.timeout.ms": str(SESSION_S * 1000),
    "auto.leader.rebalance.enable": "false",
}
"""The brokers' properties in every incident of a search: one testbed then serves for all of them."""
RATES = ("change_throttle", "set_throttle")
"""Actions that set a rate. Any other one has a `throttle` among its parameters, or sets none."""
_EXPECTED: tuple[type[TimelineExpectation], ...] = (RecordsIntact, ThrottleRemoved, *INVARIANTS)
JUDGED: tuple[str, ...] = tuple(each.key for each in _EXPECTED)
"""The expectations by which a search judges."""


@dataclass(frozen=True, slots=True)
class DrawnTopic:
    """A topic: `hosts` are the replicas of every partition, `kilobytes` the size of all records together."""

    partitions: int
    hosts: tuple[str, ...]
    kilobytes: int
    least_in_sync: int


@dataclass(frozen=True, slots=True)
class DrawnStep:
    """One action of the incident, or a fault that lasts `lasts_s`.

    It acts `at_s` after the start or, with `share`, when this share of the moves' bytes has arrived (100: done).
    """

    action: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    at_s: float = 0.0
    share: int | None = None
    lasts_s: float | None = None

    @property
    def is_fault(self) -> bool:
        """Return whether the step is a fault."""
        return self.lasts_s is not None

    @property
    def kind(self) -> str:
        """Return the kind of fault, or the operator's action: `broker-kill`, `change_throttle`."""
        return self.action.replace("_", "-") if self.is_fault else self.action


@dataclass(frozen=True, slots=True)
class Draft:
    """A drawn incident. The load goes to the topic without records."""

    topology: str
    topics: Mapping[str, DrawnTopic]
    load_kb_per_s: int
    steps: tuple[DrawnStep, ...]
    calm_s: float

    def with_steps(self, steps: Sequence[DrawnStep]) -> "Draft":
        """Return the incident with these steps."""
        return replace(self, steps=tuple(steps))

    @property
    def loaded(self) -> str | None:
        """Return the topic that the load goes to, if there is one."""
        return next((name for name, topic in self.topics.items() if not topic.kilobytes), None)


def document(
    draft: Draft,
    brokers: int,
    *,
    name: str = "search",
    summary: str = "Drawn by a search.",
    broken: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the mapping of an incident's file; `brokers` is how many the topology has."""
    lasts_s = draft.calm_s + MARGIN_S
    found: dict[str, Any] = {
        "name": name,
        "summary": summary,
        "topology": draft.topology,
        "lasts": format_seconds(lasts_s),
        "settle": "1s",
        "state": {
            "topics": {topic: _topic(each) for topic, each in draft.topics.items()},
            "properties": dict(PROPERTIES),
        },
    }
    if draft.load_kb_per_s and draft.loaded:
        found["load"] = {"produce": f"{draft.load_kb_per_s}kB/s", "to": draft.loaded, "record_size": "1kB"}
    found["timeline"] = [
        *(each for number, step in enumerate(draft.steps, 1) for each in _entries(number, step, draft.calm_s))
    ]
    found["timeline"].append(
        {
            "name": CALM,
            "at": format_seconds(draft.calm_s),
            # The second removal is for brokers that were down at the first one, and for a throttle set meanwhile.
            "do": [
                {"heal": {}},
                {"remove_throttle": {}},
                {"converge": {"within": format_seconds(CONVERGE_S)}},
                {"remove_throttle": {}},
            ],
            "expect": _expected(draft, brokers),
        }
    )
    found["broken"] = {"summary": "As drawn.", "expected_failures": [], **(broken or {})}
    found["fixed"] = {"summary": "As drawn.", **(fixed or {})}
    return found


def step_names(number: int, step: DrawnStep) -> list[str]:
    """Return the names of a step's entries in the file: of its action, and of the end of a fault."""
    own = f"step-{number}"
    return [own, f"{own}-heal"] if step.is_fault else [own]


def _expected(draft: Draft, brokers: int) -> list[dict[str, Any]]:
    """Return the expectations of the file. The file leaves out a bound that no throttle has."""
    throttled = any("throttle" in step.parameters or step.action in RATES for step in draft.steps)
    parameters = {ThrottleBound.key: {"response": f"{RESPONSE}B", "fetchers": brokers - 1}}
    return [{key: parameters.get(key, {})} for key in JUDGED if throttled or key != ThrottleBound.key]


def _topic(topic: DrawnTopic) -> dict[str, Any]:
    found: dict[str, Any] = {"partitions": topic.partitions, "replicas": list(topic.hosts)}
    if topic.kilobytes:
        found["size"] = f"{topic.kilobytes}kB"
    return {**found, "configs": {"min.insync.replicas": topic.least_in_sync}}


def _entries(number: int, step: DrawnStep, calm_s: float) -> list[dict[str, Any]]:
    names = step_names(number, step)
    when: Any = format_seconds(step.at_s) if step.at_s else "0s"
    if step.share is not None:
        when = {"move_progress": "done" if step.share >= 100 else f"{step.share}%"}
    acts: dict[str, Any] = {"name": names[0], "at": when, "loose": True}
    if step.share is not None:
        # The calm itself lets a move end; no step acts after it.
        acts["within"] = format_seconds(max(calm_s - QUIET_S, 0.1))
    does = {**acts, "do": {step.action: dict(step.parameters)}}
    if step.lasts_s is None:
        return [does]
    return [
        does,
        {**acts, "name": names[1], "delay": format_seconds(step.lasts_s), "do": {"heal": {"fault": step.action}}},
    ]
