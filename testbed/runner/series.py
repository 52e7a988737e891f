"""A series: what was asked for, and what has happened to it so far, as the journal tells. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from results.contract.verdict import Verdict
from testbed.runner.schedule import Slot, grouped
from testbed.runner.variant import Variant


@dataclass(frozen=True, slots=True)
class Group:
    """Variants that are run beside each other, in blocks of their own; `pairs` are (baseline, candidate) each.

    What is in no pair is run, and compared with nothing.
    """

    name: str
    labels: tuple[str, ...]
    repeats: int
    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Group":
        """The inverse of `dataclasses.asdict`, after JSON."""
        pairs = tuple((baseline, candidate) for baseline, candidate in document["pairs"])
        return cls(document["name"], tuple(document["labels"]), document["repeats"], pairs)


@dataclass(frozen=True, slots=True)
class Series:
    """Variants × repeats. Unless there are groups, the first variant is the baseline the others are compared with."""

    id: str
    door: str
    """The command it was started by."""
    variants: tuple[Variant, ...]
    repeats: int
    seed: int
    store: str
    measures: tuple[str, ...]
    threshold: float
    """A change of more than this fraction counts."""
    grounds: tuple[str, ...]
    """The digest of each variant's topology, Kafka versions included, as it was when the series began."""
    groups: tuple[Group, ...] = ()
    """One after the other; none: all variants are one."""

    @property
    def parts(self) -> tuple[Group, ...]:
        """Its groups, in order."""
        labels = tuple(variant.label for variant in self.variants)
        return self.groups or (Group("", labels, self.repeats, tuple((labels[0], each) for each in labels[1:])),)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Every run to be made, in order."""
        return grouped([(part.labels, part.repeats) for part in self.parts], self.seed)

    def part_of(self, slot: Slot) -> tuple[Group, int]:
        """The group a slot belongs to, and the number of its first block."""
        first = 0
        for part in self.parts:
            if slot.block < first + part.repeats:
                return part, first
            first += part.repeats
        raise ValueError(f"slot {slot.index} is in block {slot.block}; there are {first}")

    def variant(self, label: str) -> Variant:
        """The variant of this label."""
        return next(variant for variant in self.variants if variant.label == label)

    def document(self) -> dict[str, Any]:
        """As JSON has it; `from_document` inverts it."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Series":
        """A series from its document. Raises KeyError or TypeError for what is none."""
        variants = tuple(Variant.from_document(each) for each in document["variants"])
        groups = tuple(Group.from_document(each) for each in document.get("groups", ()))
        plain = {name: tuple(document[name]) for name in ("measures", "grounds")}
        return cls(**{**document, **plain, "variants": variants, "groups": groups})

    @property
    def begun(self) -> datetime:
        """When the series was begun."""
        return datetime.strptime(f"{self.id.split('-')[0]}+0000", "%Y%m%dT%H%M%SZ%z")

    def differences(self, other: "Series") -> list[str]:
        """What another series asks for otherwise, the id apart; empty when both mean the same runs."""
        return [
            f"{name}: {getattr(self, name)} there, {getattr(other, name)} here"
            for name in ("door", "variants", "repeats", "seed", "store", "measures", "threshold", "grounds", "groups")
            if getattr(self, name) != getattr(other, name)
        ]


@dataclass(frozen=True, slots=True)
class Canary:
    """A look at the machine between two runs; `environment` names the class of machine, network and software."""

    reading: Mapping[str, float]
    environment: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begun:
    """A slot's run is about to be made, under this id."""

    slot: int
    run_id: str


@dataclass(frozen=True, slots=True)
class Done:
    """A slot's run is in the store. `failed` names the criteria that did not hold, `kept` those that did; what could
    not be judged is in neither. `software` is Kafka's digest. A run that is `sound` was measured although it is
    inconclusive.
    """

    slot: int
    run_id: str
    verdict: Verdict
    values: Mapping[str, float]
    failed: tuple[str, ...]
    software: str
    seconds: float
    kept: tuple[str, ...] = ()
    sound: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A slot's run could not be made; it is tried again when the series is resumed."""

    slot: int
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Spark came to the same judgement for these runs, from the store."""

    run_ids: tuple[str, ...]


T = TypeVar("T")
Entry = Canary | Begun | Done | Failed | Confirmed
_KINDS: Mapping[str, type[Entry]] = {kind.__name__.lower(): kind for kind in (Canary, Begun, Done, Failed, Confirmed)}


def encode(entry: Entry) -> dict[str, Any]:
    """An entry as one JSON object."""
    return {"entry": type(entry).__name__.lower(), **asdict(entry)}


def decode(document: Mapping[str, Any]) -> Entry:
    """The inverse of `encode`, after JSON. Raises KeyError or TypeError for what is no entry."""
    kind = _KINDS[document["entry"]]
    fields: dict[str, Any] = {name: value for name, value in document.items() if name != "entry"}
    return kind(**{name: _plain(value) for name, value in fields.items()})


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished slot with the canaries around it; an empty tuple where none was read."""

    done: Done
    before: tuple[Canary, ...]
    after: tuple[Canary, ...]


@dataclass(frozen=True, slots=True)
class SoFar:
    """Everything a journal says."""

    ran: Mapping[int, Ran]
    """Slot index → its run."""
    unfinished: tuple[Begun, ...]
    """Begun and not ended: interrupted by a kill; the run may be in the store all the same."""
    failures: tuple[Failed, ...]
    canaries: tuple[Canary, ...]
    """All, in order of time."""
    confirmed: frozenset[str]
    closed: bool
    """Whether every run has a canary after it."""


def so_far(entries: Sequence[Entry]) -> SoFar:
    """What a journal's entries amount to."""
    ran: dict[int, Ran] = {}
    begun: dict[int, Begun] = {}
    opening: dict[int, tuple[Canary, ...]] = {}
    waiting: list[int] = []
    latest: tuple[Canary, ...] = ()
    for entry in entries:
        match entry:
            case Canary():
                latest = (entry,)
                for index in waiting:
                    ran[index] = Ran(ran[index].done, ran[index].before, latest)
                waiting.clear()
            case Begun():
                begun[entry.slot], opening[entry.slot] = entry, latest
            case Done():
                begun.pop(entry.slot, None)
                ran[entry.slot] = Ran(entry, opening.get(entry.slot, ()), ())
                waiting.append(entry.slot)
            case Failed():
                begun.pop(entry.slot, None)
            case Confirmed():
                pass
    return SoFar(
        ran=ran,
        unfinished=tuple(begun.values()),
        failures=tuple(_of(Failed, entries)),
        canaries=tuple(_of(Canary, entries)),
        confirmed=frozenset(run for entry in _of(Confirmed, entries) for run in entry.run_ids),
        closed=not waiting,
    )


def _of(kind: type[T], entries: Iterable[Entry]) -> Iterable[T]:
    return (entry for entry in entries if isinstance(entry, kind))
