"""The findings of a run about its live load: whether it kept its rate, and the audit of its records."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadProcess:
    """One process of the load. `declared` and the counts are records; `held` says whether it kept its rate.

    `why` says how it did not; `cpu_cores` is what the process itself took, None where it was not measured.
    A consumer has no `acked`, `failed` or `in_doubt`.
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
class LiveLoad:
    """The load of a run; `audits` is None when its records were not read back."""

    processes: tuple[LoadProcess, ...]
    audits: tuple[LiveAudit, ...] | None
