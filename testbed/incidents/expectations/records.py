"""Expectations about records: those that were there, and those that the load wrote."""

import re
from dataclasses import dataclass
from typing import ClassVar

from results.contract.schema import Finding, Verdict
from results.criteria.findings import finding as criterion
from testbed.incidents.evidence import DRIVER, Evidence, percentile
from testbed.incidents.words import DURATION, PERCENT, format_percent, format_time, parse_percent
from testbed.units import parse_duration


@dataclass(frozen=True, slots=True)
class RecordsIntact:
    """Every record that was acknowledged is read back once, unchanged."""

    name: ClassVar[str] = "records-intact"
    timed: ClassVar[bool] = False
    form: ClassVar[str] = "no records lost"
    pattern: ClassVar[re.Pattern[str]] = re.compile("no records lost")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "RecordsIntact":
        """See `Phrase.read`."""
        return cls()

    def judge(self, evidence: Evidence, _since_us: int) -> Finding:
        """See `Expectation.judge`; whatever was written, before this entry or after it."""
        series = ("manifest.facts.records",)
        records = evidence.records
        if records is None or records.expected <= 0:
            why = "the records were not read back" if records is None else "none were written"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        wrong = records.lost + records.duplicated + records.corrupt
        why = (
            f"{records.found} of {records.expected} found; {records.lost} lost, {records.duplicated} duplicated, "
            f"{records.corrupt} corrupt"
        )
        # Even if nobody tells of a loss: what was written and is not found is not there.
        verdict: Verdict = "pass" if wrong == 0 and records.found == records.expected else "fail"
        return criterion(self.name, self, verdict, why, observed=wrong, unit="wrong", series=series)

    def __str__(self) -> str:
        return self.form


@dataclass(frozen=True, slots=True)
class ProduceLatency:
    """So many of the load's records are acknowledged within the time, counted from when each was due."""

    name: ClassVar[str] = "produce-latency"
    timed: ClassVar[bool] = True
    form: ClassVar[str] = "produce latency of PERCENT <= DURATION"
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        rf"produce latency of (?P<share>{PERCENT}) ?<= ?(?P<limit>{DURATION})"
    )

    share: float
    limit_s: float

    @classmethod
    def read(cls, found: re.Match[str]) -> "ProduceLatency":
        """See `Phrase.read`."""
        return cls(parse_percent(found["share"]), parse_duration(found["limit"]))

    def judge(self, evidence: Evidence, since_us: int) -> Finding:
        """See `Expectation.judge`; of records due from the entry on. What was never acknowledged is late."""
        series = ("load.latency",)
        # A record's sample stands at the time it was due. One without an acknowledgement carries how long it waited.
        late = [value for ts, value in evidence.gauge(DRIVER, "load.latency") if since_us <= ts <= evidence.ended_us]
        if len(late) < 100:
            why = f"only {len(late)} records were due; at least 100 are needed"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        seen = percentile(late, self.share)
        verdict: Verdict = "pass" if seen <= self.limit_s else "fail"
        why = (
            f"{format_percent(self.share)} of {len(late)} records within {format_time(seen)}; "
            f"median {format_time(percentile(late, 0.5))}, slowest {format_time(max(late))}"
        )
        return criterion(self.name, self, verdict, why, observed=round(seen, 4), unit="s", series=series)

    def __str__(self) -> str:
        return f"produce latency of {format_percent(self.share)} <= {format_time(self.limit_s)}"


@dataclass(frozen=True, slots=True)
class AllAcknowledged:
    """No record of the load is refused or given up."""

    name: ClassVar[str] = "all-acknowledged"
    timed: ClassVar[bool] = False
    form: ClassVar[str] = "every record acknowledged"
    pattern: ClassVar[re.Pattern[str]] = re.compile("every record acknowledged")

    @classmethod
    def read(cls, _found: re.Match[str]) -> "AllAcknowledged":
        """See `Phrase.read`."""
        return cls()

    def judge(self, evidence: Evidence, _since_us: int) -> Finding:
        """See `Expectation.judge`; over the whole load."""
        series = ("load.done",)
        done = evidence.happened("load.done")
        if not done or not done[-1].detail["sent"]:
            why = "there was no load"
            return criterion(self.name, self, "inconclusive", why, observed=None, series=series)
        detail = done[-1].detail
        missing = int(detail["sent"]) - int(detail["acknowledged"])
        verdict: Verdict = "pass" if missing == 0 and not detail.get("error") else "fail"
        first = f"; first: {detail['error']}" if detail.get("error") else ""
        why = f"{detail['acknowledged']} of {detail['sent']} records acknowledged{first}"
        return criterion(self.name, self, verdict, why, observed=missing, unit="missing", series=series)

    def __str__(self) -> str:
        return self.form


PHRASES = (RecordsIntact, ProduceLatency, AllAcknowledged)
