"""The definition of a criterion, and of the runs that it judges. Each file of the `catalogue` declares one."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from results.contract.verdict import Finding
from results.criteria.run_view import RunView
from results.criteria.unfit import MACHINE_LOAD

Section = Literal["Rates", "Facts", "Preconditions"]
RATES: Section = "Rates"
FACTS: Section = "Facts"
PRECONDITIONS: Section = "Preconditions"


def has_move(run: RunView) -> bool:
    """Return whether the run has a throttled move."""
    return run.manifest.move is not None


def has_relocation(run: RunView) -> bool:
    """Return whether the run has a move without a throttle."""
    return run.manifest.relocation is not None


def old_broker_killed(run: RunView) -> bool:
    """Return whether the old broker of a handover was killed: its session ends first, and it uploads nothing more."""
    handover = run.manifest.facts.handover
    return handover is not None and handover.killed_us is not None


def killed_hosts(run: RunView) -> frozenset[str]:
    """Return the hosts whose brokers the run killed for good: nothing of them can be read afterwards."""
    handover = run.manifest.facts.handover
    if handover is None or not old_broker_killed(run):
        return frozenset()
    return frozenset(each.source for each in handover.partitions)


def has_any_move(run: RunView) -> bool:
    """Return whether the run has a move, with a throttle or without."""
    return has_move(run) or has_relocation(run)


def has_steps(run: RunView) -> bool:
    """Return whether the run is one of KIP-455's scenarios."""
    return run.manifest.steps is not None


def has_batches(run: RunView) -> bool:
    """Return whether the run has a throttled move that is carried out in steps."""
    return has_move(run) and run.batched


NETWORK_CHANGED = "nic-unchanged"
"""The precondition that does not hold when another process changed a link during the run."""
NETWORK_MEASURED = "nic-measured"
"""The precondition that does not hold when a NIC is slower than declared, or carries another tenant's traffic."""
CLOCK_STEADY = "clock-steady"
"""The precondition that does not hold when a clock was set during the run."""
MEMORY_PRESSURE, DISK_PRESSURE = "memory-pressure", "disk-pressure"
"""The preconditions that do not hold when tasks waited for memory, or for a disk."""
BROKERS_UNRESTRAINED = "brokers-unrestrained"
"""The precondition that does not hold when something outside of Kafka held a broker back: a signal, a limit, a disk."""
CLOCKS_AGREE = "clocks-agree"
"""The precondition that does not hold when the clocks of the machines of a run differ."""
CLUSTER_CHANGED = "cluster-unchanged"
"""The finding of changes of the cluster by other clients; it is a precondition of runs that have such changes only."""
LOAD_SUSTAINED = "load-rate-sustained"
"""The precondition that does not hold when a process of the load was slower than declared."""
NOT_KAFKAS = (NETWORK_CHANGED, NETWORK_MEASURED, CLOCK_STEADY)
"""The preconditions that no broker can break: they leave the failure of a fact open.

The others name what a defect of a broker can cause as well: busy CPUs, full memory, a busy disk, pauses of its JVM,
clients whose buffers are full.
"""
SLOW_CLIENTS = (*NOT_KAFKAS, BROKERS_UNRESTRAINED, MACHINE_LOAD, MEMORY_PRESSURE, DISK_PRESSURE)
"""The preconditions without which the runner or its clients may be slower than declared, whatever brokers do."""
CLOCKS = (CLOCK_STEADY, CLOCKS_AGREE)
"""The preconditions of facts that compare instants of two clocks, such as the controller's and the runner's."""
UNCERTAIN_BYTES = frozenset({CLOCK_STEADY, CLOCKS_AGREE, LOAD_SUSTAINED})
"""The preconditions without which too many bytes in a time prove nothing: a broker keeps its quota by its wall clock,
and does not hold back what producers write in bursts to replicas that have caught up."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A named expectation: what it needs, and how it is judged."""

    name: str
    title: str
    """How the report calls it."""
    section: Section
    """Of the report. A precondition that is inconclusive leaves criteria open that rest on it."""
    judge: Callable[[RunView], Iterable[Finding]]
    catches: str
    """What it would have caught, in one sentence."""
    smallest: str = "any"
    """The smallest defect that one run finds. A size holds for `kip73-two-node`, fetch=tuned, rate=10MB/s."""
    needs: Callable[[RunView], bool] = has_move
    """Whether the run has what the criterion is about."""
    by_name: bool = True
    """Judge a run whose experiment names the criterion; else every run that has what it needs."""
    rests_on_preconditions: bool = False
    """Whether its findings are left open when the NICs, the machine or the load were not as declared."""
    excused_by: Collection[str] = ()
    """The names of the preconditions that leave a failure open, for instance `NOT_KAFKAS` or `BROKERS_UNRESTRAINED`.
    Everything else holds, also on a busy machine: it would excuse what Kafka itself makes busy. Empty: every
    precondition leaves every finding open."""
    kafkas_own: Callable[[RunView], bool] = lambda _run: False
    """Of a precondition that does not hold: whether brokers themselves are why. What was measured stands then."""
    excuses: Callable[[RunView, str, Finding], bool] = lambda _run, _precondition, _failed: True
    """Whether one of these preconditions can explain this failure: a slow NIC explains no wrong state."""
    holds_anyway: Callable[[RunView, Sequence[Finding]], Sequence[Finding | None]] = lambda _run, _shaky: ()
    """For each finding, in order: what holds although these preconditions do not, or None. Empty: nothing does."""
    spared: Callable[[RunView], Iterable[Finding]] | None = None
    """The findings as if the time had not passed in which the machine was unfit (`RunView.unfit`). None: what is judged
    is no wait of some seconds. A failure by that time alone is left open."""
    excuses_brokers: bool = False
    """Of a precondition: whether it leaves rates open also where brokers broke it. The machine, or the JVM's heap that
    the settings give, may be too small for a healthy Kafka."""
    about_machine: bool = False
    """Of a precondition: whether it is about the machine and its network, and not about Kafka or its clients."""
    of_nic_bytes: bool = False
    """Whether bytes of other clients on a NIC explain its failure: they may write to a topic that they create."""
    of_records: bool = False
    """Whether it fails for a lost or spoiled record: no machine explains that, and of other clients a deletion only."""
    quota_binds: bool = False
    """Whether it fails where a link is slower than the quota: its experiments refuse such settings."""
    explains_time: bool = False
    """Whether it says what a move's time is made of. Where it alone is open, what was measured stands: a broker that is
    slower than its NIC may be the regression that the user looks for."""
    skips: Callable[[RunView], str | None] = lambda _run: None
    """Why nothing can be said of a run although it has what the criterion needs; None when something can."""

    def findings(self, run: RunView) -> list[Finding]:
        """Judge a run."""
        return list(self.judge(run))
