"""The findings of a run about its live load: whether it sustained its rate, and the audit of its records."""

from dataclasses import dataclass

BEHIND_S = 2.0
"""The most seconds' worth of records that a producer that keeps its rate may have without an answer. With more, the
brokers accept less than the declared rate."""


@dataclass(frozen=True, slots=True)
class LoadProcess:
    """One process of the load. `declared` and the counts are records; `held` says whether it sustained its rate.

    `why` says how it did not; `cpu_cores` is what the process itself took, None where it was not measured.
    A consumer has no `acked`, `failed` or `in_doubt`. `kept_waiting` says of a producer that did not keep its rate that
    it handed over every record in time, and brokers did not answer; False also in manifests that did not say.
    """

    name: str
    kind: str
    declared_bytes_per_s: float
    due: int
    sent: int
    acked: int
    failed: int
    in_doubt: int
    held: bool
    why: str = ""
    cpu_cores: float | None = None
    kept_waiting: bool = False


@dataclass(frozen=True, slots=True)
class LiveAudit:
    """The live records of one producer, read back over every partition after the load was stopped.

    `lost` were acknowledged and are not there. `duplicated` and `reordered` count records that came again, or after
    a later one of their producer and partition; with `exactly_once` (an idempotent producer) neither may be.
    `sent_again` counts those of both that the client sent again under a new producer epoch, which is no broker's fault.
    `corrupt` differ from what was sent. `first` names some of what is wrong, in words.
    """

    name: str
    acked: int
    found: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    exactly_once: bool
    first: tuple[str, ...] = ()
    sent_again: int = 0


@dataclass(frozen=True, slots=True)
class LiveDeliveries:
    """What one consumer was given while the load ran; counts are records, without what the log itself has wrong.

    `checked` are those whose value was checked with its checksum, and `compared` those whose key, headers and timestamp
    were compared with what their producer gave them. `skipped` counts offsets that were left out, in partitions without
    transactions. `missed` were acknowledged and not delivered, between others of their producer or after an assignment.
    `repeated` came twice within one assignment of the partition, or after a later record. `corrupt` are changed, of
    another partition or producer, or other ones than before at their offset; a batch that the client refused counts as
    one. `refused` were never acknowledged. `first` names some of what is wrong, in words. `again` came in an earlier
    assignment as well, which is legal: the group's offset is behind what was read. `older` were written before the
    load, although the consumer began at the end of the log: no record is wrong, but the broker's answer was. So it is
    not among the flaws of the records. `behind` were acknowledged and had not come when the load ended; it is not known
    that a broker held them back.
    """

    name: str
    records: int
    checked: int
    skipped: int
    missed: int
    repeated: int
    corrupt: int
    refused: int
    first: tuple[str, ...] = ()
    again: int = 0
    compared: int = 0
    older: int = 0
    behind: int = 0

    @property
    def wrong(self) -> int:
        """Return the number of flaws."""
        return self.skipped + self.missed + self.repeated + self.corrupt + self.refused


@dataclass(frozen=True, slots=True)
class LiveLoad:
    """The load of a run; `audits` is None when its records were not read back.

    `deliveries` is empty also in manifests whose consumers did not check what they read.
    """

    processes: tuple[LoadProcess, ...]
    audits: tuple[LiveAudit, ...] | None
    deliveries: tuple[LiveDeliveries, ...] = ()
