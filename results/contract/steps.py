"""The steps of a KIP-455 scenario in a run's manifest: each action, and the expected states of partitions. Pure.

Instants are microseconds since the epoch. What *was* seen is in the run's events, `trace.log` and the like.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

When = Literal["before", "seen", "never", "end"]
"""`before`: in force when the step began, or the step proves nothing; `end`: in force when it ended."""
ACCEPTED = "accepted"
LINGER_US = 25_000
"""How long the controller goes on adding records to a batch: `controller.quorum.append.linger.ms`, Kafka's default."""
GONE = "does not exist"


@dataclass(frozen=True, slots=True)
class State:
    """A partition as it is in force: by the controller's log, or by an answer to an Admin client.

    `replicas` and the others are in the order in which they are written. A partition that is `gone` has none.
    """

    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    leader: int | None = None
    leader_epoch: int = -1
    gone: bool = False

    def __str__(self) -> str:
        if self.gone:
            return GONE
        parts = [f"replicas {numbers(self.replicas)}"]
        parts += [f"adding {numbers(self.adding)}"] if self.adding else []
        parts += [f"removing {numbers(self.removing)}"] if self.removing else []
        parts.append(f"ISR {numbers(self.isr)}")
        parts.append("no leader" if self.leader is None else f"leader {self.leader}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class RequiredState:
    """What a partition's state is to be; None (and an empty `in_sync`, `out_of_sync`) is anything.

    `replicas`, `adding`, `removing` and `isr` are sets; `order` is the replicas in exactly this order. `in_sync` are
    in the ISR and `out_of_sync` are not; other replicas may be in it. One of `leaders` must lead.
    """

    replicas: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None
    in_sync: tuple[int, ...] = ()
    out_of_sync: tuple[int, ...] = ()
    leaders: tuple[int, ...] | None = None
    gone: bool = False

    def met_by(self, state: State) -> bool:
        """Return whether a state is as wanted."""
        if self.gone or state.gone:
            return self.gone and state.gone
        sets = (
            (self.replicas, state.replicas),
            (self.adding, state.adding),
            (self.removing, state.removing),
            (self.isr, state.isr),
        )
        return (
            all(wanted is None or set(wanted) == set(there) for wanted, there in sets)
            and (self.order is None or self.order == state.replicas)
            and set(self.in_sync) <= set(state.isr)
            and not set(self.out_of_sync) & set(state.isr)
            and (self.leaders is None or state.leader in self.leaders)
        )

    def __str__(self) -> str:
        if self.gone:
            return GONE
        parts = []
        for name, wanted in (("replicas", self.replicas), ("adding", self.adding), ("removing", self.removing)):
            if wanted is not None:
                parts.append(f"{name} {numbers(sorted(wanted), braces=True)}" if wanted else f"nothing {name}")
        parts += [f"replicas {numbers(self.order)} in this order"] if self.order is not None else []
        parts += [f"ISR {numbers(sorted(self.isr), braces=True)}"] if self.isr is not None else []
        parts += [f"{numbers(self.in_sync, braces=True)} in sync"] if self.in_sync else []
        parts += [f"{numbers(self.out_of_sync, braces=True)} not in sync"] if self.out_of_sync else []
        parts += [f"leader {' or '.join(map(str, self.leaders))}"] if self.leaders is not None else []
        return ", ".join(parts) or "anything"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One state of one partition that a step is to show, or not to. `kip`: what KIP-455's text says instead."""

    name: str
    when: When
    topic: str
    partition: int
    wanted: RequiredState
    kip: str = ""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step as it was taken: from when it was asked for until its end was seen (or the driver stopped waiting).

    `from_us` is None for a step that was never taken, `why` says why. `answer` is *accepted*, or the errors by the
    protocol's names. `within_s` is the time in which a healthy cluster comes to the step's end; None: no time is known.
    """

    name: str
    did: str
    from_us: int | None
    to_us: int | None
    answer: str
    wanted_answer: str
    expectations: tuple[Expectation, ...]
    why: str = ""
    within_s: float | None = None


@dataclass(frozen=True, slots=True)
class StepsRecord:
    """All steps of a run, and whether the replayed log came out at what DescribeTopics said at the end.

    `equal` is None, and `problem` says why, when that is not known.
    """

    topics: tuple[str, ...]
    steps: tuple[StepRecord, ...]
    equal: bool | None
    differences: tuple[str, ...] = ()
    problem: str = ""


def asked(steps: Sequence[StepRecord]) -> Iterator[tuple[int, int, Expectation, int, int]]:
    """Yield, of every step that was taken, its place, each expectation's place, the expectation, and the span it is
    about.

    The controller writes records in batches, and a batch has the time, in whole milliseconds, at which it was begun: a
    step's span begins as much earlier. Steps are further apart than that.
    """
    for place, step in enumerate(steps):
        if step.from_us is None or step.to_us is None:
            continue
        begin = (step.from_us - LINGER_US) // 1000 * 1000
        for number, expectation in enumerate(step.expectations):
            if expectation.when == "before":
                span = begin - 1, begin - 1
            elif expectation.when == "end":
                span = step.to_us, step.to_us
            else:
                span = begin, step.to_us
            yield place, number, expectation, *span


def numbers(brokers: Sequence[int], *, braces: bool = False) -> str:
    """Return brokers for people: ``[4, 2]``, or as a set ``{2, 4}``."""
    listed = ", ".join(map(str, brokers))
    return f"{{{listed}}}" if braces else f"[{listed}]"
