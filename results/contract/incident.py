"""The part of a run's manifest about a replayed incident."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from results.contract.verdict import Finding

Variant = Literal["broken", "fixed"]


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An entry of the timeline as far as it is judged; each expectation is a mapping of one key to its parameters.

    An entry `at_time` acts at a fixed time and must be punctual. The trigger of an `optional` one need not come.
    A `loose` one may act late, and its actions may fail.
    """

    name: str
    at_time: bool
    optional: bool
    expectations: tuple[Mapping[str, Any], ...] = ()
    loose: bool = False


@dataclass(frozen=True, slots=True)
class IncidentRecord:
    """A replayed incident: its variant, what the variant is to fail, its file with all parameters put in.

    The verdict comes from `entries`, `brokers` and `uplinks_bps` (declared rates by rack and direction) with the
    samples and events. A run that has no entries is an older one: its `criteria` are as they were recorded.
    """

    name: str
    variant: Variant
    seed: int
    summary: str
    variant_summary: str
    expected_failures: tuple[str, ...]
    document: Mapping[str, Any]
    criteria: tuple[Finding, ...] = ()
    entries: tuple[TimelineEntry, ...] = ()
    brokers: tuple[str, ...] = ()
    uplinks_bps: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
