"""Expectations about bytes: how fast a host's logs or NIC go, and which limit is seen to bind."""

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from results.contract.schema import Direction, Finding
from results.criteria.findings import finding as criterion
from testbed.incidents.evidence import Evidence, growth_within, highest_rate
from testbed.incidents.words import AMOUNT, DURATION, NAME, format_time, optional_topic
from testbed.units import format_bit_rate, format_byte_rate, parse_byte_rate, parse_duration

NIC_METRIC = {"transmit": "nic.tx.bytes", "receive": "nic.rx.bytes"}
UPLINK_METRIC = {"transmit": "uplink.tx.bytes", "receive": "uplink.rx.bytes"}
BOUND_WINDOW_S, BOUND_SHARE = 3.0, 0.9
"""A limit binds when some 3 s carry at least this share of the declared rate."""


@dataclass(frozen=True, slots=True)
class Rate:
    """No window carries more bytes than the rate allows: of a topic's logs on the host, or of its NIC."""

    name: ClassVar[str] = "rate"
    timed: ClassVar[bool] = True
    form: ClassVar[str] = "rate [of TOPIC] on HOST receive|transmit <= RATE over DURATION"
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        rf"rate(?: of (?P<topic>{NAME}))? on (?P<host>{NAME}) (?P<direction>receive|transmit) ?<= ?"
        rf"(?P<limit>{AMOUNT}) over (?P<window>{DURATION})"
    )

    host: str
    direction: Direction
    limit_bytes_per_s: int
    window_s: float
    topic: str | None = None

    @classmethod
    def read(cls, found: re.Match[str]) -> "Rate":
        """See `Phrase.read`."""
        direction: Direction = "receive" if found["direction"] == "receive" else "transmit"
        if found["topic"] and direction == "transmit":
            raise ValueError("a topic's bytes are counted where its logs grow; allowed: receive, or no topic")
        window_s = parse_duration(found["window"])
        if window_s < 2:
            raise ValueError("it is sampled once a second; allowed: windows of 2s or more")
        return cls(found["host"], direction, parse_byte_rate(found["limit"]), window_s, found["topic"])

    def judge(self, evidence: Evidence, since_us: int) -> Finding:
        """See `Expectation.judge`."""
        metric = "log.bytes" if self.topic else NIC_METRIC[self.direction]
        found = evidence.log_bytes(self.host, self.topic) if self.topic else evidence.gauge(self.host, metric)
        readings = evidence.after(found, since_us)
        most = growth_within(readings, self.window_s)

        def told(verdict: Literal["pass", "fail", "inconclusive"], why: str, observed: float | None) -> Finding:
            return criterion(
                self.name, self, verdict, why, observed=observed, unit="bytes/s", series=(metric,),
                host=self.host, direction=self.direction,
            )  # fmt: skip

        if most is None:
            return told("inconclusive", "nothing was sampled", None)
        rate, begun_us = most[0] / self.window_s, most[1]
        window = format_time(self.window_s)
        why = f"{most[0] / 1e6:.1f} MB in the {window} from {evidence.seconds(begun_us):+.1f} s"
        if rate > self.limit_bytes_per_s:
            return told("fail", why, rate)
        if gap := evidence.gap(readings, since_us):
            return told("inconclusive", gap, rate)
        if most[0] <= 0:
            return told("inconclusive", "no byte was seen, so nothing was held back", rate)
        return told("pass", f"at most {why}", rate)

    def __str__(self) -> str:
        limit, window = format_byte_rate(self.limit_bytes_per_s), format_time(self.window_s)
        return f"rate{optional_topic(self.topic)} on {self.host} {self.direction} <= {limit} over {window}"


def _judge_bound(
    name: str, what: object, where: str, direction: Direction, metric: str, bps: int | None, wanted: bool,
    evidence: Evidence, since_us: int,
) -> Finding:  # fmt: skip
    readings = evidence.after(evidence.gauge(where, metric), since_us)
    top = highest_rate(readings, BOUND_WINDOW_S)

    def told(verdict: Literal["pass", "fail", "inconclusive"], why: str, observed: float | None) -> Finding:
        return criterion(
            name, what, verdict, why, observed=observed, unit="of declared", series=(metric,),
            host=where, direction=direction,
        )  # fmt: skip

    if bps is None:
        return told("inconclusive", f"{where} has no declared rate", None)
    if top is None:
        return told("inconclusive", "nothing was sampled", None)
    share = top[0] * 8 / bps
    why = (
        f"the fastest {BOUND_WINDOW_S:g} s, from {evidence.seconds(top[1]):+.1f} s, had {share * 100:.0f} % "
        f"of {format_bit_rate(bps)}"
    )
    binds = share >= BOUND_SHARE
    gap = evidence.gap(readings, since_us)
    if gap and not binds:
        return told("inconclusive", gap, share)
    return told("pass" if binds == wanted else "fail", why, share)


@dataclass(frozen=True, slots=True)
class NicBound:
    """The host's NIC is seen to be the limit; with `not`: it never is."""

    name: ClassVar[str] = "nic-bound"
    timed: ClassVar[bool] = True
    form: ClassVar[str] = "nic-bound HOST receive|transmit (or: not nic-bound …)"
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        rf"(?P<no>not )?nic-bound (?P<host>{NAME}) (?P<direction>receive|transmit)"
    )

    host: str
    direction: Direction
    wanted: bool = True

    @classmethod
    def read(cls, found: re.Match[str]) -> "NicBound":
        """See `Phrase.read`."""
        return cls(found["host"], "receive" if found["direction"] == "receive" else "transmit", not found["no"])

    def judge(self, evidence: Evidence, since_us: int) -> Finding:
        """See `Expectation.judge`."""
        rates = evidence.nic_bps.get(self.host)
        bps = None if rates is None else rates[self.direction == "receive"]
        metric = NIC_METRIC[self.direction]
        return _judge_bound(self.name, self, self.host, self.direction, metric, bps, self.wanted, evidence, since_us)

    def __str__(self) -> str:
        return f"{'' if self.wanted else 'not '}nic-bound {self.host} {self.direction}"


@dataclass(frozen=True, slots=True)
class UplinkBound:
    """The rack's uplink is seen to be the limit (transmit: out of the rack); with `not`: it never is."""

    name: ClassVar[str] = "uplink-bound"
    timed: ClassVar[bool] = True
    form: ClassVar[str] = "uplink-bound RACK receive|transmit (or: not uplink-bound …)"
    pattern: ClassVar[re.Pattern[str]] = re.compile(
        rf"(?P<no>not )?uplink-bound (?P<rack>{NAME}) (?P<direction>receive|transmit)"
    )

    rack: str
    direction: Direction
    wanted: bool = True

    @classmethod
    def read(cls, found: re.Match[str]) -> "UplinkBound":
        """See `Phrase.read`."""
        return cls(found["rack"], "receive" if found["direction"] == "receive" else "transmit", not found["no"])

    def judge(self, evidence: Evidence, since_us: int) -> Finding:
        """See `Expectation.judge`."""
        rates = evidence.uplink_bps.get(self.rack)
        bps = None if rates is None else rates[self.direction == "receive"]
        metric = UPLINK_METRIC[self.direction]
        return _judge_bound(self.name, self, self.rack, self.direction, metric, bps, self.wanted, evidence, since_us)

    def __str__(self) -> str:
        return f"{'' if self.wanted else 'not '}uplink-bound {self.rack} {self.direction}"


PHRASES = (Rate, NicBound, UplinkBound)
