"""A campaign on disk: one line of JSON for each thing that happened, and what all of them amount to.

Each line is on disk for good before the next thing begins. A lock of the kernel, which ends with the process, keeps
other commands from the file. A line that a kill cut short is the last one and is dropped; damage anywhere else is an
error.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from results.contract import durable
from results.contract.verdict import Verdict
from testbed.errors import TestbedError, UsageError
from testbed.paths import state_dir
from testbed.runner.campaign import Campaign


@dataclass(frozen=True, slots=True)
class CanaryReading:
    """A look at the machine between two runs; `environment` names the class of machine, network and software."""

    reading: Mapping[str, float]
    environment: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A slot's run is about to be made, under this id."""

    slot: int
    run_id: str


@dataclass(frozen=True, slots=True)
class RunDone:
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
class RunFailed:
    """A slot's run could not be made; it is tried again when the campaign is resumed."""

    slot: int
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunsConfirmed:
    """Spark came to the same judgement for these runs, from the store."""

    run_ids: tuple[str, ...]


T = TypeVar("T")
JournalEntry = CanaryReading | RunBegun | RunDone | RunFailed | RunsConfirmed
_KINDS: Mapping[str, type[JournalEntry]] = {
    "canary": CanaryReading,
    "begun": RunBegun,
    "done": RunDone,
    "failed": RunFailed,
    "confirmed": RunsConfirmed,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode(entry: JournalEntry) -> dict[str, Any]:
    """An entry as one JSON object."""
    return {"entry": _NAMES[type(entry)], **asdict(entry)}


def decode(document: Mapping[str, Any]) -> JournalEntry:
    """The inverse of `encode`, after JSON. Raises KeyError or TypeError for what is no entry."""
    kind = _KINDS[document["entry"]]
    fields: dict[str, Any] = {name: value for name, value in document.items() if name != "entry"}
    return kind(**{name: _plain(value) for name, value in fields.items()})


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class SlotRun:
    """A finished slot with the canaries around it; an empty tuple where none was read."""

    done: RunDone
    before: tuple[CanaryReading, ...]
    after: tuple[CanaryReading, ...]


@dataclass(frozen=True, slots=True)
class CampaignState:
    """Everything a journal says."""

    ran: Mapping[int, SlotRun]
    """Slot index → its run."""
    unfinished: tuple[RunBegun, ...]
    """RunBegun and not ended: interrupted by a kill; the run may be in the store all the same."""
    failures: tuple[RunFailed, ...]
    canaries: tuple[CanaryReading, ...]
    """All, in order of time."""
    confirmed: frozenset[str]
    closed: bool
    """Whether every run has a canary after it."""


def campaign_state(entries: Sequence[JournalEntry]) -> CampaignState:
    """What a journal's entries amount to."""
    ran: dict[int, SlotRun] = {}
    begun: dict[int, RunBegun] = {}
    opening: dict[int, tuple[CanaryReading, ...]] = {}
    waiting: list[int] = []
    latest: tuple[CanaryReading, ...] = ()
    for entry in entries:
        match entry:
            case CanaryReading():
                latest = (entry,)
                for index in waiting:
                    ran[index] = SlotRun(ran[index].done, ran[index].before, latest)
                waiting.clear()
            case RunBegun():
                begun[entry.slot], opening[entry.slot] = entry, latest
            case RunDone():
                begun.pop(entry.slot, None)
                ran[entry.slot] = SlotRun(entry, opening.get(entry.slot, ()), ())
                waiting.append(entry.slot)
            case RunFailed():
                begun.pop(entry.slot, None)
            case RunsConfirmed():
                pass
    return CampaignState(
        ran=ran,
        unfinished=tuple(begun.values()),
        failures=tuple(_of(RunFailed, entries)),
        canaries=tuple(_of(CanaryReading, entries)),
        confirmed=frozenset(run for entry in _of(RunsConfirmed, entries) for run in entry.run_ids),
        closed=not waiting,
    )


def _of(kind: type[T], entries: Iterable[JournalEntry]) -> Iterable[T]:
    return (entry for entry in entries if isinstance(entry, kind))


SCHEMA = 1
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[a-z]{1,16}-[0-9a-f]{6}")


def folder() -> Path:
    """Where journals lie."""
    return state_dir() / "runner"


def known() -> list[str]:
    """The ids of all campaign, oldest first."""
    return sorted(path.stem for path in folder().glob("*.jsonl") if _ID.fullmatch(path.stem))


class CampaignJournal:
    """One open, locked journal. Make one with `created` or `opened`."""

    def __init__(self, path: Path, file: FileIO, campaign: Campaign, entries: list[JournalEntry]) -> None:
        self.path = path
        self.campaign = campaign
        self._file = file
        self._entries = entries

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """Everything that has happened, in order."""
        return tuple(self._entries)

    def append(self, entry: JournalEntry) -> None:
        """Write an entry; on return it survives a crash of the machine. Raises `TestbedError` when it cannot be."""
        _write(self._file, encode(entry), self.path)
        self._entries.append(entry)


@contextlib.contextmanager
def created(campaign: Campaign) -> Iterator[CampaignJournal]:
    """A new journal, for the `with` block. Raises `TestbedError` when there is one of that id."""
    if not _ID.fullmatch(campaign.id):
        raise ValueError(f"campaign id {campaign.id!r}: expected one like 20261121T200000Z-sweep-0a1b2c")
    durable.make_folder(folder(), 0o700)
    path = folder() / f"{campaign.id}.jsonl"
    try:
        file = FileIO(path, "x+")
    except FileExistsError as error:
        raise TestbedError(f"campaign {campaign.id} is there already: {path}") from error
    with file:
        _lock(file, campaign.id)
        _write(file, {"schema": SCHEMA, "campaign": campaign.document()}, path)
        durable.sync(folder())
        yield CampaignJournal(path, file, campaign, [])


@contextlib.contextmanager
def opened(campaign_id: str) -> Iterator[CampaignJournal]:
    """The journal of a campaign, for the `with` block.

    Raises `UsageError` when there is no such campaign, `TestbedError` when another command works on it, or the
    journal is damaged.
    """
    path = folder() / f"{campaign_id}.jsonl"
    if not _ID.fullmatch(campaign_id) or not path.is_file():
        raise UsageError(f"there is no campaign {campaign_id}; there are: {', '.join(known()) or 'none'}")
    with FileIO(path, "r+") as file:
        _lock(file, campaign_id)
        lines, whole = _whole_lines(file.readall())
        campaign, entries = _parse(lines, path)
        # What a kill left of a line must not become the beginning of the next one.
        file.truncate(whole)
        file.seek(whole)
        yield CampaignJournal(path, file, campaign, entries)


def _whole_lines(content: bytes) -> tuple[list[bytes], int]:
    """The lines that were written to their end, and how many bytes they are."""
    whole = content.rfind(b"\n") + 1
    return content[:whole].splitlines(), whole


def _parse(lines: list[bytes], path: Path) -> tuple[Campaign, list[JournalEntry]]:
    number = 1
    try:
        head = json.loads(lines[0])
        if head["schema"] != SCHEMA:
            raise ValueError(f"schema {head['schema']}, this version reads {SCHEMA}")
        campaign = Campaign.from_document(head["campaign"])
        entries = []
        for line in lines[1:]:
            number += 1
            entries.append(decode(json.loads(line)))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise TestbedError(
            f"{path}, line {number}: not a campaign's journal ({error!r}); begin a new campaign, and remove this file"
        ) from error
    return campaign, entries


def _write(file: FileIO, document: dict[str, Any], path: Path) -> None:
    line = json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    try:
        durable.append(file, line)
    except OSError as error:
        raise TestbedError(f"{path} cannot be written: {error}; make room, then go on with --resume") from error


def _lock(file: FileIO, campaign_id: str) -> None:
    try:
        durable.lock_descriptor(file.fileno(), wait=False)
    except BlockingIOError as error:
        raise TestbedError(
            f"another command works on campaign {campaign_id} right now; wait for it or stop it"
        ) from error
