"""The result of a load: samples, the results of every process, and whether the load was as declared. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from results.contract.live_load import BEHIND_S, LiveAudit, LiveLoad, LoadProcess
from results.contract.schema import Sample
from testbed.workload.audit import Audit, ProducerAudit
from testbed.workload.deliveries import compare
from testbed.workload.delivery_reports import Delivered
from testbed.workload.records import AckedRun, Where, WrittenRecords
from testbed.workload.spans import Span
from testbed.workload.spec import ConsumerSpec, ProducerSpec, Spec

LATEST_S = 1.0
"""The longest delay in seconds with which a producer may hand over a record and still keep its declared rate."""
REFUSED_S = 1.0
"""The most seconds' worth of records that may be refused, or stay without an answer."""


@dataclass(slots=True)
class ProcessReports:
    """The sums of a process's reports so far."""

    spec: Spec
    producer: int
    newest: dict[str, Any] = field(default_factory=dict)
    latest_s: float = 0.0
    cpu_s: float = 0.0
    final: bool = False
    error: str = ""
    new_epochs: tuple[str, ...] = ()
    delivered: Delivered = field(default_factory=Delivered)
    _begun_us: int = 0
    _settled: dict[int, int] = field(default_factory=dict)
    _refused: dict[int, list[Span]] = field(default_factory=dict)
    _doubtful: dict[int, list[Span]] = field(default_factory=dict)
    _acked_at: dict[int, list[AckedRun]] = field(default_factory=dict)

    def hear(self, said: Mapping[str, Any]) -> None:
        """Add one report of the process."""
        for partition, place in said.get("settled", ()):
            self._settled[partition] = place
        for found, key in ((self._refused, "refused"), (self._doubtful, "doubtful")):
            for partition, begin, end in said.get(key, ()):
                found.setdefault(partition, []).append((begin, end))
        for partition, begin, end, shift in said.get("acked_at", ()):
            runs = self._acked_at.setdefault(partition, [])
            goes_on = runs and runs[-1][1:] == (begin, shift)
            runs.append((runs.pop()[0] if goes_on else begin, end, shift))
        if isinstance(self.spec, ConsumerSpec):
            self.delivered.hear(self.spec.topics, said)
        self.error = self.error or str(said.get("error") or "")
        self.new_epochs = tuple(said.get("new_epochs", self.new_epochs))
        if "t" in said:
            since_us = said["t"] - self.newest.get("t", said["t"])
            self.cpu_s += float(said["cpu"]) * since_us / 1e6
            self._begun_us = self._begun_us or said["t"]
            self.newest = dict(said)
            self.latest_s = max(self.latest_s, float(said.get("late_s", 0.0)))
        self.final = self.final or bool(said.get("final"))

    def written(self) -> tuple[WrittenRecords, ...]:
        """Return the producer's records for the audit; nothing for a consumer."""
        if not isinstance(self.spec, ProducerSpec):
            return ()
        sent = dict(self.newest["sent_places"]) if self.final else {}
        return tuple(
            WrittenRecords(
                self.producer,
                self.spec.name,
                self.spec.topic,
                partition,
                self._settled.get(partition, 0),
                sent.get(partition),
                tuple(self._refused.get(partition, ())),
                tuple(self._doubtful.get(partition, ())),
                acked_at=tuple(self._acked_at.get(partition, ())),
                envelope=self.spec.envelope,
                transactional=self.spec.transaction_s is not None,
            )
            for partition in self.spec.partitions
        )

    def ends(self) -> dict[Where, int]:
        """Return each partition with the offset after its last acknowledged record; nothing for a consumer."""
        if not isinstance(self.spec, ProducerSpec):
            return {}
        return {(self.spec.topic, partition): runs[-1][1] + runs[-1][2] for partition, runs in self._acked_at.items()}

    def result(self) -> "ProcessResult":
        """Return the result of the finished process."""
        spec, newest = self.spec, self.newest
        ran_s, why, kept_waiting = (newest.get("t", 0) - self._begun_us) / 1e6, "", False
        if not self.final:
            why = "it ended before the load was stopped" + (f": {self.error}" if self.error else "")
        elif newest.get("fatal"):
            why = f"it could not go on: {self.error}"
        elif isinstance(spec, ProducerSpec):
            why = not_held(spec, newest, self.latest_s)
            kept_waiting = bool(why) and not handed_late(spec, newest, self.latest_s)
        return ProcessResult(
            spec=spec,
            due=newest.get("due", 0),
            sent=newest.get("sent", 0),
            acked=newest.get("acked", 0),
            failed=newest.get("failed", 0),
            in_doubt=newest.get("in_doubt", 0),
            read=newest.get("records", 0),
            cpu_cores=self.cpu_s / ran_s if ran_s > 0 else None,
            held=not why,
            why=why,
            error=self.error,
            ended=self.final,
            written=self.written(),
            new_epochs=self.new_epochs,
            delivered=self.delivered,
            kept_waiting=kept_waiting,
        )


def behind_s(spec: ProducerSpec, last: Mapping[str, Any]) -> float:
    """Return how many seconds' worth of due records had no outcome at a producer's last report."""
    answered = sum(last.get(name, 0) for name in ("acked", "failed", "aborted", "in_doubt"))
    return float((last.get("due", 0) - answered) / spec.records_per_s)


def not_held(spec: ProducerSpec, last: Mapping[str, Any], latest_s: float) -> str:
    """Return why a producer did not keep its declared rate; empty if it did."""
    return handed_late(spec, last, latest_s) or _unanswered(spec, last)


def handed_late(spec: ProducerSpec, last: Mapping[str, Any], latest_s: float) -> str:
    """Return what is said of a producer that handed records over late, or not at all; empty if it did neither."""
    missing = last["due"] - last["sent"]
    # One record may be late or on its way at the end, however few there are in a second.
    if latest_s > LATEST_S or missing > max(1.0, LATEST_S * spec.records_per_s):
        left = f", {missing} were never sent" if missing > 0 else ""
        return (
            f"a record was handed over {latest_s:.2f} s after it was due{left}: "
            f"this process had too little CPU, or its buffer of {spec.buffer_bytes / 1e6:.0f} MB was full"
            + (", or the commit of a transaction waited for the brokers" if spec.transaction_s is not None else "")
        )
    return ""


def _unanswered(spec: ProducerSpec, last: Mapping[str, Any]) -> str:
    refused, waiting = last["failed"] + last["in_doubt"], last["waiting_at_stop"]
    if refused > REFUSED_S * spec.records_per_s:
        return (
            f"{last['failed']} of {last['due']} records were refused and {last['in_doubt']} had no answer at all: "
            f"the brokers took less than was declared"
        )
    if waiting > max(1.0, BEHIND_S * spec.records_per_s):
        behind_s = waiting / spec.records_per_s
        return f"{behind_s:.1f} s of records had no answer when the load ended: the brokers took less than was declared"
    return ""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of one process. Counts are records, including the first ones that open the connections.

    `read` is a consumer's count. `ended` is False if the process died; its counts are then those of its last report.
    `new_epochs` has librdkafka's reasons for the producer epochs that it began during the load, at most the first five.
    `delivered` is what a consumer read. `kept_waiting` says that brokers alone are why the rate was not held.
    """

    spec: Spec
    due: int
    sent: int
    acked: int
    failed: int
    in_doubt: int
    read: int
    cpu_cores: float | None
    held: bool
    why: str
    error: str
    ended: bool
    written: tuple[WrittenRecords, ...]
    new_epochs: tuple[str, ...] = ()
    delivered: Delivered = field(default_factory=Delivered)
    kept_waiting: bool = False

    @property
    def name(self) -> str:
        """Return the process's name."""
        return self.spec.name


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """The result of a load."""

    processes: tuple[ProcessResult, ...]

    @property
    def held(self) -> bool:
        """Return whether every process kept its declared rate."""
        return all(process.held for process in self.processes)

    @property
    def written(self) -> tuple[WrittenRecords, ...]:
        """Return the records that the audit should find."""
        return tuple(each for process in self.processes for each in process.written)

    def process(self, name: str) -> ProcessResult:
        """Return one process's result. Raise KeyError for an unknown name."""
        for process in self.processes:
            if process.name == name:
                return process
        raise KeyError(name)

    def live(
        self,
        audit: Audit | None,
        *,
        more: Sequence[WrittenRecords] = (),
        others: Iterable[WrittenRecords] = (),
        readers: Iterable[ProcessResult] = (),
        shared: bool = False,
    ) -> LiveLoad:
        """Return the load for a run's manifest; `audit` is None if nothing was read back.

        `more` are records of idempotent producers that are no process of the load: they have an account, too. `others`
        are further records of the topics; `readers` are consumers that are not the load's. With `shared` storage a
        leader's end that is too low is no flaw.
        """
        processes = tuple(_process(process) for process in self.processes)
        if audit is None:
            return LiveLoad(processes, None)
        written = (*self.written, *more, *others)
        found = [(each.spec, each.delivered) for each in (*self.processes, *readers)]
        consumers = [(spec, delivered) for spec, delivered in found if isinstance(spec, ConsumerSpec)]
        members = Counter(spec.group for spec, _delivered in consumers)
        deliveries = tuple(
            compare(
                spec.name,
                delivered,
                written,
                audit,
                alone=members[spec.group] == 1,
                from_end=not spec.from_beginning,
                shared=shared,
            )
            for spec, delivered in consumers
        )
        return LiveLoad(processes, _audits(self.processes, more, audit), deliveries)


def _process(found: ProcessResult) -> LoadProcess:
    spec = found.spec
    return LoadProcess(
        name=spec.name,
        kind="consumer" if isinstance(spec, ConsumerSpec) else "producer",
        declared_bytes_per_s=0.0 if isinstance(spec, ConsumerSpec) else spec.rate_bytes_per_s,
        # For a consumer: the records that it read. Nothing else was due.
        due=found.read if isinstance(spec, ConsumerSpec) else found.due,
        sent=found.read if isinstance(spec, ConsumerSpec) else found.sent,
        acked=found.acked,
        failed=found.failed,
        in_doubt=found.in_doubt,
        held=found.held,
        why=found.why,
        cpu_cores=None if found.cpu_cores is None else round(found.cpu_cores, 3),
        kept_waiting=found.kept_waiting,
    )


def _audits(processes: Sequence[ProcessResult], more: Iterable[WrittenRecords], audit: Audit) -> tuple[LiveAudit, ...]:
    by_name = {each.name: each for each in audit.producers}
    found = [
        _live_audit(by_name[process.name], process.spec.exactly_once, process.new_epochs)
        for process in processes
        if isinstance(process.spec, ProducerSpec) and process.name in by_name
    ]
    names = dict.fromkeys(each.name for each in more)
    return (*found, *(_live_audit(by_name[name], True, ()) for name in names if name in by_name))


def _live_audit(one: ProducerAudit, exactly_once: bool, new_epochs: tuple[str, ...]) -> LiveAudit:
    return LiveAudit(
        one.name,
        one.acked,
        one.found,
        one.lost,
        one.duplicated,
        one.reordered,
        # A refused record that exists counts as corrupt: it was never acknowledged.
        one.corrupt + one.refused_found,
        exactly_once,
        (*(new_epochs if one.sent_again else ()), *one.first),
        one.sent_again,
    )


_PRODUCED = {
    "due": "client.produce.due",
    "sent": "client.produce.sent",
    "acked": "client.produce.acked",
    "failed": "client.produce.failed",
    "in_doubt": "client.produce.in_doubt",
    "late_s": "client.late",
    "cpu": "client.cpu",
}
_CONSUMED = {"records": "client.consume.records", "lag": "client.consume.lag", "cpu": "client.cpu"}


def samples(spec: Spec, said: Mapping[str, Any]) -> list[Sample]:
    """Return the samples of one report. Counts of one second and bucket in several samples add up."""
    producing = isinstance(spec, ProducerSpec)
    metrics = _PRODUCED if producing else _CONSUMED
    found = [
        Sample(said["t"], spec.name, metric, float(said[key]))
        for key, metric in metrics.items()
        if "t" in said and said.get(key) is not None
    ]
    metric = "client.produce.latency" if producing else "client.consume.latency"
    for ts_us, buckets in said.get("latency", ()):
        found += [Sample(ts_us, spec.name, metric, float(count), label=str(bucket)) for bucket, count in buckets]
    return found
