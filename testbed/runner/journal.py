"""A campaign's journal on disk: one line of JSON for each event, and the campaign's state that follows from them.

Each line is synced to disk before the next event begins. A kernel lock, which ends with the process, keeps other
commands from the file. If a kill truncates the last line, it is dropped; damage anywhere else is an error.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from results.contract import document as documents
from results.contract import durable
from results.contract.untrusted import parse_json
from results.contract.verdict import Verdict
from testbed.errors import TestbedError, UsageError, reason
from testbed.paths import state_dir
from testbed.runner.campaign import Campaign


@dataclass(frozen=True, slots=True)
class CanaryReading:
    """The canaries' readings between two runs; `environment` names the class of machine, network and software."""

    reading: Mapping[str, float]
    environment: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunBegun:
    """The entry before a run: its slot and its id."""

    slot: int
    run_id: str


@dataclass(frozen=True, slots=True)
class RunDone:
    """The entry of a run in the store.

    `failed` names the failed criteria, `kept` the passed ones; an unjudged criterion is in neither. `software` is
    Kafka's digest. `seconds` is 0 where the runner adopted the run after a kill. A `sound` run has valid measures
    although it is inconclusive. `logged` has the kinds of lines in its logs that nothing explains; None when the logs
    were not read whole. `ended` says whether the run came to its end; None where the machine or the testbed explains
    that it did not.
    """

    slot: int
    run_id: str
    verdict: Verdict
    values: Mapping[str, float]
    failed: tuple[str, ...]
    software: str
    seconds: float = 0.0
    kept: tuple[str, ...] = ()
    sound: bool = False
    logged: tuple[str, ...] | None = None
    ended: bool | None = True


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The entry of a failed run; a resumed campaign tries its slot again. `stuck` says that Kafka was the cause."""

    slot: int
    why: str
    seconds: float
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class RunsConfirmed:
    """The entry of runs for which Spark reached the same judgement from the store."""

    run_ids: tuple[str, ...]


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
    """Return an entry as one JSON object."""
    return {"entry": _NAMES[type(entry)], **asdict(entry)}


def decode(document: Mapping[str, Any]) -> JournalEntry:
    """Return the entry of an object that `encode` and JSON made. Raise KeyError or `DocumentError` when it is none."""
    kind = document["entry"]
    return documents.decode(_KINDS[kind], {name: each for name, each in document.items() if name != "entry"}, kind)


@dataclass(frozen=True, slots=True)
class SlotRun:
    """A finished slot with the canaries before and after it; an empty tuple without a reading."""

    done: RunDone
    before: tuple[CanaryReading, ...]
    after: tuple[CanaryReading, ...]


@dataclass(frozen=True, slots=True)
class CampaignState:
    """The state of a campaign, from its journal."""

    ran: Mapping[int, SlotRun]
    """Slot index → its run."""
    unfinished: tuple[RunBegun, ...]
    """The runs that a kill interrupted; such a run may be in the store."""
    failures: tuple[RunFailed, ...]
    canaries: tuple[CanaryReading, ...]
    """All canaries, in order of time."""
    confirmed: frozenset[str]
    closed: bool
    """Whether every run has a canary after it."""


def campaign_state(entries: Sequence[JournalEntry]) -> CampaignState:
    """Return the state that follows from a journal's entries."""
    ran: dict[int, SlotRun] = {}
    begun: dict[int, RunBegun] = {}
    opening: dict[int, tuple[CanaryReading, ...]] = {}
    waiting: list[int] = []
    failures: list[RunFailed] = []
    canaries: list[CanaryReading] = []
    confirmed: set[str] = set()
    for entry in entries:
        match entry:
            case CanaryReading():
                canaries.append(entry)
                for index in waiting:
                    ran[index] = SlotRun(ran[index].done, ran[index].before, (entry,))
                waiting.clear()
            case RunBegun():
                begun[entry.slot], opening[entry.slot] = entry, tuple(canaries[-1:])
            case RunDone():
                begun.pop(entry.slot, None)
                ran[entry.slot] = SlotRun(entry, opening.get(entry.slot, ()), ())
                waiting.append(entry.slot)
            case RunFailed():
                begun.pop(entry.slot, None)
                failures.append(entry)
            case RunsConfirmed():
                confirmed.update(entry.run_ids)
    unfinished = tuple(begun.values())
    return CampaignState(ran, unfinished, tuple(failures), tuple(canaries), frozenset(confirmed), not waiting)


SCHEMA = 1
_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[a-z]{1,16}-[0-9a-f]{6}")


def folder() -> Path:
    """Return the folder of all journals."""
    return state_dir() / "runner"


def known() -> list[str]:
    """Return the ids of all campaigns, oldest first."""
    return sorted(path.stem for path in folder().glob("*.jsonl") if _ID.fullmatch(path.stem))


class CampaignJournal:
    """One open, locked journal; `created` and `opened` return it."""

    def __init__(self, path: Path, file: FileIO, campaign: Campaign, entries: list[JournalEntry]) -> None:
        self.path = path
        self.campaign = campaign
        self._file = file
        self._entries = entries

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """Return all entries, in order of time."""
        return tuple(self._entries)

    def append(self, entry: JournalEntry) -> None:
        """Write an entry; it then survives a crash of the machine. Raise `TestbedError` when it cannot be written."""
        _write(self._file, encode(entry), self.path)
        self._entries.append(entry)


@contextlib.contextmanager
def created(campaign: Campaign) -> Iterator[CampaignJournal]:
    """Create a journal and yield it for the `with` block. Raise `TestbedError` when there is one with this id."""
    durable.make_folder(folder(), 0o700)
    path = folder() / f"{campaign.id}.jsonl"
    try:
        file = FileIO(path, "x+")
    except FileExistsError as error:
        raise TestbedError(f"campaign {campaign.id} is there already: {path}") from error
    with file:
        try:
            _lock(file, campaign.id)
            _write(file, {"schema": SCHEMA, "campaign": campaign.document()}, path, "try again")
            durable.sync(folder())
        except BaseException:  # an empty journal would be a campaign that cannot be resumed
            path.unlink(missing_ok=True)
            raise
        yield CampaignJournal(path, file, campaign, [])


@contextlib.contextmanager
def opened(campaign_id: str) -> Iterator[CampaignJournal]:
    """Yield a campaign's journal. Raise `UsageError` without one, `TestbedError` for one in use, or a damaged one."""
    path = folder() / f"{campaign_id}.jsonl"
    if not _ID.fullmatch(campaign_id) or not path.is_file():
        raise UsageError(f"there is no campaign {campaign_id}; there are: {', '.join(known()) or 'none'}")
    with FileIO(path, "r+") as file:
        _lock(file, campaign_id)
        content = file.readall()
        whole = content.rfind(b"\n") + 1
        campaign, entries = _parse(content[:whole].splitlines(), path)
        # The next entry must not continue a line that a kill truncated.
        file.truncate(whole)
        file.seek(whole)
        yield CampaignJournal(path, file, campaign, entries)


def stored(campaign_id: str) -> Campaign:
    """Return a campaign to resume. Raise errors as `opened` does."""
    with opened(campaign_id) as journal:
        return journal.campaign


def _parse(lines: list[bytes], path: Path) -> tuple[Campaign, list[JournalEntry]]:
    number = 1
    try:
        head = parse_json(lines[0])
        if head["schema"] != SCHEMA:
            raise ValueError(f"schema {head['schema']}, this version reads {SCHEMA}")
        campaign = Campaign.from_document(head["campaign"])
        entries = []
        for line in lines[1:]:
            number += 1
            entries.append(decode(parse_json(line)))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise TestbedError(
            f"{path}, line {number}: not a campaign's journal ({reason(error)}); begin a new campaign, "
            "and remove this file"
        ) from error
    return campaign, entries


def _write(file: FileIO, document: dict[str, Any], path: Path, then: str = "continue with --resume") -> None:
    line = json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    try:
        durable.append(file, line)
    except OSError as error:
        raise TestbedError(f"{path} cannot be written: {error}; free space on that disk, then {then}") from error


def _lock(file: FileIO, campaign_id: str) -> None:
    try:
        durable.lock_file(file.fileno(), folder() / f"{campaign_id}.jsonl", wait=False)
    except BlockingIOError as error:
        raise TestbedError(
            f"another command works on campaign {campaign_id} right now; wait for it or stop it"
        ) from error
