"""The manifest: the JSON document whose presence makes a run exist.

Sizes are bytes, rates are bytes per second unless the name says `_bps` (bits per second), times are seconds.
"""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from results.contract.clocks import ClockReading
from results.contract.cluster import ClusterChange
from results.contract.defect import DefectRecord
from results.contract.document import DocumentError, decode, encode
from results.contract.handover import HandoverRecord
from results.contract.incident import IncidentRecord
from results.contract.live_load import LiveLoad
from results.contract.logs import HostLog
from results.contract.move import BatchingPolls, Expected, Fetch, Fetchers, Flow, Move
from results.contract.network import NetworkRecord, NicMeasurement
from results.contract.relocation import Relocation
from results.contract.steps import StepsRecord
from results.contract.untrusted import parse_json
from results.contract.upgrade import UnknownSchemaError, upgraded
from results.contract.verdict import Verdict

__all__ = [
    "RUN_ID",
    "SCHEMA_VERSION",
    "ClockReading",
    "DefectRecord",
    "Differences",
    "Done",
    "Expected",
    "Facts",
    "Fetch",
    "Fetchers",
    "FileKind",
    "Flow",
    "InForce",
    "IncidentRecord",
    "LiveLoad",
    "Load",
    "Machine",
    "Manifest",
    "ManifestError",
    "Move",
    "NetworkRecord",
    "NicMeasurement",
    "Records",
    "Relocation",
    "StepsRecord",
    "StoredFile",
    "TopologyRecord",
    "Versions",
    "new_run_id",
]

SCHEMA_VERSION = 3
"""What is written. Every version from 1 on is read; `results/contract/upgrade.py` says what each one changed."""
RUN_ID = re.compile(r"^\d{8}T\d{6}Z-[a-z0-9]+(-[a-z0-9]+)*-[a-z0-9]{6}\Z")

FileKind = Literal["samples", "events", "criteria", "report"]


class ManifestError(ValueError):
    """A manifest that cannot be read as one; the message names it and every wrong field."""


@dataclass(frozen=True, slots=True)
class TopologyRecord:
    """The topology the run had: its name, digest (sha256) and resolved document."""

    name: str
    digest: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Versions:
    """What software the run used; `kafka` is host -> version."""

    testbed: str
    commit: str | None
    kafka: Mapping[str, str]
    jars_digest: str | None
    image_digest: str | None
    python: str
    engine: str
    kernel: str


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's fingerprint: runs of different machines are not compared.

    `cpu_quota` is the limit in CPUs of the control group in which the testbed ran, or of one above it; None: no limit.
    """

    cpu_model: str
    cores: int
    memory_bytes: int
    kernel: str
    engine: str
    storage_driver: str
    cpu_quota: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """The machine's load over the run as fractions of all cores; None where it was not sampled."""

    cpu_busy_mean: float | None
    cpu_busy_max: float | None
    steal_max: float | None


@dataclass(frozen=True, slots=True)
class Records:
    """The preloaded records, read back after the move."""

    expected: int
    found: int
    lost: int
    duplicated: int
    corrupt: int
    digest_mismatches: tuple[str, ...] = ()
    """The replicas in sync whose log is not their leader's, in words."""
    reordered: int = 0
    """Found after a later record of the same partition; 0 also in manifests that did not count them."""
    sent_again: int = 0
    """Those of both that the client sent again under a new producer epoch; 0 also in manifests that did not ask."""
    first: tuple[str, ...] = ()
    """Some of what is wrong, in words; empty also in manifests that did not name it."""
    foreign: int = 0
    """Those of `corrupt` that no producer of the run wrote: records without its header, or of other producers."""
    uncompared: str = ""
    """Why the logs of replicas could not be compared; empty if they were, or need not be."""
    out_of_sync: tuple[str, ...] = ()
    """The replicas of live brokers that were not in sync at the end, in words; empty also in manifests that did not
    ask. They are no flaw of the records."""

    @property
    def wrong(self) -> int:
        """Return the number of flaws: records that are lost, doubled, changed or late, and replicas that differ."""
        return self.lost + self.duplicated + self.corrupt + self.reordered + len(self.digest_mismatches)


@dataclass(frozen=True, slots=True)
class Differences:
    """A state compared with what it should be; `differences` in words, empty when `ok`."""

    ok: bool
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """Whether the reassignment was seen to be done; `why` says what was seen or still missing.

    `waited_s` is the time in which it was not done; None: it was done, or an error ended the wait, or the run is from
    before the runner recorded it.
    """

    ok: bool
    why: str
    waited_s: float | None = None


@dataclass(frozen=True, slots=True)
class InForce:
    """Whether every broker reported the quota before the move; `seconds` from setting it until then."""

    ok: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that the run established in addition to its samples; None is *not established*, and never passes."""

    records: Records | None = None
    restored: Differences | None = None
    leaders: Differences | None = None
    done: Done | None = None
    in_force: InForce | None = None
    logs: tuple[HostLog, ...] | None = None
    live: LiveLoad | None = None
    batching: BatchingPolls | None = None
    handover: HandoverRecord | None = None


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the run; `path` is relative to the store's root, `rows` is 0 for a report.

    In a pack the path is that of the runs' common file; rows, bytes and sha256 are those of the file before.
    """

    path: str
    kind: FileKind
    rows: int
    bytes: int
    sha256: str

    @property
    def packed(self) -> bool:
        """Return whether it shares its path with the files of other runs."""
        return self.path.startswith("packs/")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One run. `files` and `report` are filled in by the store at commit.

    `criteria` names the criteria that its experiment asks for; None before schema 3.
    `defects` are what its brokers did wrong on purpose; such a run is in no history.
    `network` is None in runs that did not read their shaping back.
    `clocks` are readings of the other machines' clocks; empty for a run on one machine.
    `cluster` has what other clients changed while data moved; it is read only where a criterion failed.
    `failure` says in one line why the experiment ended early, or could not be judged. Otherwise it is empty. With it
    only samples, events and facts are known.
    """

    run_id: str
    experiment: str
    profile: str
    started: str
    ended: str
    verdict: Verdict
    parameters: Mapping[str, str | int | float]
    topology: TopologyRecord
    versions: Versions
    machine: Machine
    nics: tuple[NicMeasurement, ...]
    load: Load
    move: Move | None
    facts: Facts
    incident: IncidentRecord | None = None
    steps: StepsRecord | None = None
    relocation: Relocation | None = None
    criteria: tuple[str, ...] | None = None
    defects: tuple[DefectRecord, ...] = ()
    network: NetworkRecord | None = None
    failure: str = ""
    clocks: tuple[ClockReading, ...] = ()
    cluster: tuple[ClusterChange, ...] = ()
    report: str | None = None
    files: tuple[StoredFile, ...] = field(default=())
    schema: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if not RUN_ID.match(self.run_id):
            raise ValueError(f"run_id {self.run_id!r} is not like 20261121T181500Z-kip73-two-node-ab12cd")
        for name in ("started", "ended"):
            _check_utc(name, getattr(self, name))

    def to_json(self) -> str:
        """Return the document as indented JSON; raise ValueError for a number JSON has no word for (nan, inf)."""
        document = encode(self)
        ordered = {"schema": document.pop("schema"), **document}
        return json.dumps(ordered, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @staticmethod
    def from_json(text: str | bytes, source: str = "manifest") -> "Manifest":
        """Parse and validate; raise ManifestError that starts with `source`."""
        try:
            document = parse_json(text, finite=True)
        except ValueError as error:
            raise ManifestError(f"{source}: not a JSON document: {error}") from error
        if not isinstance(document, dict):
            raise ManifestError(f"{source}: expected an object, found {type(document).__name__}")
        return Manifest.from_document(document, source)

    @staticmethod
    def from_document(document: Mapping[str, Any], source: str = "manifest") -> "Manifest":
        """Return the same from parsed JSON, of any schema up to this version's; raise ManifestError."""
        try:
            return decode(Manifest, upgraded(document, SCHEMA_VERSION), source)
        except UnknownSchemaError as error:
            raise ManifestError(f"{source}: {error}") from error
        except DocumentError as error:
            raise ManifestError(str(error)) from error


def new_run_id(experiment: str, now: datetime | None = None, token: str | None = None) -> str:
    """Return a run id that sorts by time: ``20261121T181500Z-kip73-two-node-ab12cd``.

    `now` must carry a time zone; `token` is six characters of [a-z0-9], random when not given.
    """
    moment = now or datetime.now(UTC)
    if moment.tzinfo is None:
        raise ValueError("now has no time zone; use datetime.now(UTC)")
    run_id = f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}-{experiment}-{token or secrets.token_hex(3)}"
    if not RUN_ID.match(run_id):
        raise ValueError(
            f"run id {run_id!r}: experiment must be words of [a-z0-9] joined by '-', token six of [a-z0-9]"
        )
    return run_id


def _check_utc(name: str, text: str) -> None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} {text!r} is not an RFC 3339 time") from None
    if moment.utcoffset() != timedelta(0):
        raise ValueError(f"{name} {text!r} is not in UTC; write it as 2026-11-21T18:15:00Z")
