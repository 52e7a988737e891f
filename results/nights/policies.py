"""Policies of a user for series: mutes until a time, and floors that no value may be beyond.

<root>/series/policies.json   both lists, replaced whole
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from results.contract.store import Store, StoreError
from results.contract.texts import digits
from results.contract.untrusted import parse_json

POLICIES = "series/policies.json"


@dataclass(frozen=True, slots=True)
class SeriesPattern:
    """Which series: an id, a scenario's id, or an experiment, some of its parameters and a metric.

    As text: `ID`, `EXPERIMENT`, `EXPERIMENT:METRIC` or `EXPERIMENT NAME=VALUE…:METRIC`, as `results judge` prints it.
    """

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    metric: str | None = None

    @classmethod
    def parse(cls, text: str) -> "SeriesPattern":
        """Return the pattern of a text. Raise ValueError when it is none."""
        head, colon, metric = text.strip().rpartition(":") if ":" in text else (text.strip(), "", "")
        name, *settings = head.split() or [""]
        pairs = [each.partition("=") for each in settings]
        if not name or "=" in name or (colon and not metric) or not all(key and equals for key, equals, _ in pairs):
            raise ValueError(f"{text!r} names no series: write EXPERIMENT:METRIC, or EXPERIMENT NAME=VALUE:METRIC")
        return cls(name, tuple((key, value) for key, _, value in pairs), metric or None)

    def fits(self, series: str, scenario: str, experiment: str, metric: str, parameters: Mapping[str, Any]) -> bool:
        """Return whether a series is meant."""
        if self.name == series:
            return True
        return (
            self.name in (scenario, experiment)
            and self.metric in (None, metric)
            and all(name in parameters and str(parameters[name]) == value for name, value in self.parameters)
        )


@dataclass(frozen=True, slots=True)
class Mute:
    """Series that colour no night until a time, with the reason. Times are ISO 8601, of UTC without an offset."""

    series: str
    reason: str
    by: str
    at: str
    until: str

    def __post_init__(self) -> None:
        SeriesPattern.parse(self.series)
        if not self.reason.strip():
            raise ValueError("no reason: say why the series is muted, for the next reader")
        if self.ends <= moment(self.at):
            raise ValueError(f"muted until {self.until}, which is over: give a later time")

    @property
    def ends(self) -> datetime:
        """Return the time at which it ends, in UTC."""
        return moment(self.until)

    def holds(self, at: datetime) -> bool:
        """Return whether the series are muted at a time."""
        return moment(self.at) <= at < self.ends


def moment(text: str) -> datetime:
    """Return a time of ISO 8601 in UTC. Raise ValueError when the text is none."""
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Floor:
    """A value that no run of some series may be beyond: above `never_above`, or below `never_below`."""

    series: str
    never_above: float | None = None
    never_below: float | None = None

    def __post_init__(self) -> None:
        if SeriesPattern.parse(self.series).metric is None and " " in self.series.strip():
            raise ValueError(f"{self.series!r} names no metric: a floor is one of a metric, as EXPERIMENT:move-seconds")
        if self.never_above is None and self.never_below is None:
            raise ValueError("a floor without a value: give never_above, never_below or both")
        for value in (self.never_above, self.never_below):
            if value is not None and not math.isfinite(value):
                raise ValueError(f"a floor at {value}: no value is beyond it; give a number")

    def broken(self, low: float, high: float) -> str:
        """Return how values from `low` to `high` are beyond it, in words; empty when they are not."""
        if self.never_above is not None and high > self.never_above:
            return f"{digits(high)}, and never above {digits(self.never_above)}"
        if self.never_below is not None and low < self.never_below:
            return f"{digits(low)}, and never below {digits(self.never_below)}"
        return ""


@dataclass(frozen=True, slots=True)
class Policies:
    """Everything that users have said."""

    mutes: tuple[Mute, ...] = ()
    floors: tuple[Floor, ...] = ()

    def muted(self, mutes: Iterable[Mute]) -> "Policies":
        """Return the policies with these mutes in place of those of the same series."""
        new = tuple(mutes)
        kept = tuple(each for each in self.mutes if each.series not in {one.series for one in new})
        return replace(self, mutes=(*kept, *new))

    def floored(self, floor: Floor) -> "Policies":
        """Return the policies with this floor in place of that of the same series."""
        return replace(self, floors=(*(each for each in self.floors if each.series != floor.series), floor))

    def without_mutes(self, series: Iterable[str]) -> "Policies":
        """Return the policies without these mutes. Raise ValueError for one that is not there."""
        gone = _all_there(series, [each.series for each in self.mutes], "muted")
        return replace(self, mutes=tuple(each for each in self.mutes if each.series not in gone))

    def without_floors(self, series: Iterable[str]) -> "Policies":
        """Return the policies without these floors. Raise ValueError for one that is not there."""
        gone = _all_there(series, [each.series for each in self.floors], "with a floor")
        return replace(self, floors=tuple(each for each in self.floors if each.series not in gone))

    def mute_of_scenario(
        self, scenario: str, experiment: str, parameters: Mapping[str, Any], at: datetime
    ) -> Mute | None:
        """Return the mute of a whole scenario that holds at a time; None without one."""
        for mute in self.mutes:
            pattern = SeriesPattern.parse(mute.series)
            whole = pattern.metric is None and pattern.fits("", scenario, experiment, "", parameters)
            if whole and mute.holds(at):
                return mute
        return None

    def to_json(self) -> str:
        """Return the policies as a document."""
        return json.dumps({"version": 1, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Policies":
        """Read the policies back. Raise ValueError, KeyError or TypeError when the text is none."""
        found = parse_json(text)
        if found["version"] != 1:
            raise ValueError(f"policies of version {found['version']}: expected 1")
        return cls(tuple(Mute(**each) for each in found["mutes"]), tuple(Floor(**each) for each in found["floors"]))


Change = Callable[[Policies], Policies]


def _all_there(wanted: Iterable[str], known: list[str], what: str) -> set[str]:
    gone = set(wanted)
    if strange := sorted(gone - set(known)):
        raise ValueError(f"{strange[0]!r} is not {what}; there are: {', '.join(known) or 'none'}")
    return gone


def load(store: Store) -> Policies:
    """Return the policies of a store. Raise StoreError when they cannot be read: nothing is judged then."""
    try:
        return Policies.from_json(store.files.read(POLICIES).decode())
    except FileNotFoundError:
        return Policies()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{store.location}/{POLICIES}: not the file of mutes and floors: {error}; repair it, or remove it: then "
            "nothing is muted, and there is no floor"
        ) from error


def save(store: Store, policies: Policies) -> None:
    """Replace the policies of a store. Under its lock."""
    store.files.put(POLICIES, policies.to_json().encode())
