"""The state of a store's series between nights: one file, replaced whole, so that a night counts whole or not at all.

<root>/histories/series.json   a line a series: its history, up to where it was judged, and what was said last; before
                               them one that says how many there are
<root>/series/noise.json       what the series are like when nothing happens, as of that file; and what was known before
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from results.compare.log_lines import NewLines
from results.contract.aliases import measure_name
from results.contract.document import decode
from results.contract.store import Store
from results.contract.untrusted import parse_json
from results.nights.retention import HISTORIES, read_lines
from results.series.history import Acknowledgement, History, ReportedChange, history_document, sealed
from results.series.judge import Verdict
from results.series.noise_estimation import LearnedNoise

SERIES = f"{HISTORIES}/series.json"
NOISE = "series/noise.json"
NEVER = -(1 << 62)
EARLIER_FIELDS = {"told": "reported_at"}
"""Field of a verdict in a file of an earlier version → field."""
_OWN = ("series", "experiment", "metric", "judged", "since", "scenario")
"""Fields of a series' line besides its history, what was said, and the causes."""


@dataclass(frozen=True, slots=True)
class SeriesVerdict:
    """What was said of a series when it was judged last. `ENV-CHANGED` is a change for which a canary answers."""

    verdict: Verdict | str
    why: str = ""
    runs: int = 0
    score: float = 0.0
    chance: float = 1.0
    detectable: float | None = None
    reported: ReportedChange | None = None
    reported_at: int = 0
    """The time of the store's newest run when `reported` was first reported, in microseconds."""
    low: float | None = None
    high: float | None = None
    """The lowest and highest value of the newest night."""
    failed: str = ""
    """The failures of that night that count, in words; of `failed-criteria` alone."""
    machine: str = ""
    """A canary that moved in that night, in words."""
    lines: tuple[NewLines, ...] = ()
    """The kinds of log lines that are new in that night; of `failed-criteria` alone."""


@dataclass(frozen=True, slots=True)
class SeriesState:
    """A series: `judged` and `since` are times in microseconds, of the newest run that was judged and of the oldest
    that is still needed. `causes` says of changes (by first bad run) that were the machine's. What it is a series of
    (`experiment`, `scenario`) is filled in by the process that judges the store."""

    series: str
    experiment: str = ""
    metric: str = ""
    judged: int = NEVER
    since: int = NEVER
    history: History = field(default_factory=History)
    said: SeriesVerdict = field(default_factory=lambda: SeriesVerdict("NO-DATA"))
    causes: Mapping[str, str] = field(default_factory=dict)
    scenario: str = ""

    def to_json(self) -> str:
        """Return the state as one line, which is one of a `History` as well."""
        own = {name: getattr(self, name) for name in _OWN}
        said = asdict(self.said)
        return json.dumps({**json.loads(self.history.to_json()), **own, "said": said, "causes": dict(self.causes)})

    @classmethod
    def from_json(cls, text: str) -> "SeriesState":
        """Read the state back. Raise ValueError, KeyError or TypeError when the line is none."""
        found: dict[str, Any] = parse_json(text)
        document = {name: found[name] for name in (*_OWN, "causes")}
        document["metric"] = measure_name(found["metric"])
        document["said"] = {EARLIER_FIELDS.get(name, name): value for name, value in found["said"].items()}
        return decode(cls, {**document, "history": history_document(found)}, "series")


def load(store: Store) -> dict[str, SeriesState]:
    """Return series → what is remembered of it. Raise StoreError when that cannot be read: nothing is judged then."""
    try:
        data = store.files.read(SERIES)
    except FileNotFoundError:
        return {}
    otherwise = (
        "put a whole copy there, or remove the file: all nights are judged again then, and what was acknowledged is "
        "open again"
    )
    states = read_lines(data, f"{store.location}/{SERIES}", SeriesState.from_json, otherwise)
    return {state.series: state for state in states}


def load_noise(store: Store) -> LearnedNoise | None:
    """Return what was learned up to the nights that are remembered; None: nothing was, or it cannot be read.

    A process that was killed between the two files left the noise of later nights: then what was known before counts.
    """
    try:
        series, text = store.files.read(SERIES), store.files.read(NOISE).decode(errors="replace")
        found = json.loads(text)
        if "of" in found and found["of"] != _digest(series):
            text = json.dumps(found["before"])
        return LearnedNoise.from_json(text)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save(store: Store, states: Iterable[SeriesState], learned: LearnedNoise | None = None) -> None:
    """Replace what is remembered, whole and durably, and with it what was `learned` (None: that stays as it is).

    Two files are not replaced in one step: the noise comes first, says of which series it is, and keeps what was known
    before.
    """
    series = sealed(state.to_json() for state in sorted(states, key=lambda each: each.series))
    before = load_noise(store)
    if (now := learned or before) is not None:
        known = before and json.loads(before.to_json())
        noise = {**json.loads(now.to_json()), "of": _digest(series), "before": known}
        store.files.put(NOISE, json.dumps(noise).encode())
    store.files.put(SERIES, series)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def acknowledge(
    states: Mapping[str, SeriesState], wanted: Iterable[str], by: Acknowledgement, first_bad: str | None = None
) -> tuple[dict[str, SeriesState], list[tuple[SeriesState, ReportedChange]]]:
    """Return all states with the open changes of the wanted series acknowledged, and which those were. Pure.

    A series is named by its id, or as EXPERIMENT or EXPERIMENT:METRIC for all with that name. Raise ValueError for a
    name that fits none, or series without an open change, and without a reason.
    """
    after, done = dict(states), []
    for name in wanted:
        fitting = [state for state in states.values() if _fits(state, name)]
        if not fitting:
            raise ValueError(f"no series {name!r}; `testbed results judge --json` has their ids")
        open_ones = [
            (state, one)
            for state in fitting
            for one in state.history.open
            if first_bad is None or one.first_bad == first_bad
        ]
        if not open_ones:
            which = f"that begins with run {first_bad}" if first_bad else "that is not acknowledged"
            raise ValueError(f"series {name}: there is no change {which}")
        for state, one in open_ones:
            current = after[state.series]
            if one.first_bad in {each.first_bad for each in current.history.open}:
                after[state.series] = replace(current, history=current.history.acknowledge(one.first_bad, by))
                done.append((state, one))
    return after, done


def _fits(state: SeriesState, name: str) -> bool:
    experiment, colon, metric = name.partition(":")
    return state.series == name or (state.experiment == experiment and (not colon or state.metric == metric))
