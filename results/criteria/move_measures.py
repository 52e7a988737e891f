"""Measures of a throttled move, computed with numpy from its samples and events."""

import numpy as np

from results.contract.manifest import Manifest
from results.contract.move import FlowKind, Move, flows_through
from results.contract.verdict import DIRECTIONS, Direction
from results.criteria.background import background_bytes
from results.criteria.cluster_measures import (
    machine_load,
    measure_burden,
    measure_isr,
    measure_rests,
    measure_stall,
    own_cores,
)
from results.criteria.cost_measures import measure_costs
from results.criteria.host_rates import HostRates, PhaseMeasures
from results.criteria.measures import Conservation, ControlTransfer, MoveMeasures, NicPayload, QuotaPolls, Side
from results.criteria.protection_measures import measure_clients
from results.criteria.quantities import DRIVER, GAP_S, PAYLOAD, SECOND_S, US
from results.criteria.rate_measures import PhaseSpan, RateMeasurer, phases
from results.criteria.sample_series import RunSeries, Series
from results.criteria.windows import counted, counted_between, enclosing, growth, longest_gap_s, sum_of_all, windows

SIDES: tuple[Side, ...] = ("leader", "follower")


def measure_move(manifest: Manifest, run: RunSeries) -> MoveMeasures:
    """Return all measures of the run's move. Raise ValueError when the manifest has none."""
    if manifest.move is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no move to measure")
    return _MoveMeasurer(manifest, manifest.move, run).measure()


class _MoveMeasurer:
    """One move's measuring: the instants that all measures share, and a method for each."""

    def __init__(self, manifest: Manifest, move: Move, run: RunSeries) -> None:
        self.manifest, self.move, self.run = manifest, move, run
        self.started = run.event_us("move.started")
        self.done = run.event_us("move.done")
        self.rates = RateMeasurer(run, move, self.started or 0)

    def measure(self) -> MoveMeasures:
        move, started = self.move, self.started
        if started is None:
            return MoveMeasures(kip73_s=move.kip73_seconds)
        busy = [
            (host, direction)
            for host in move.brokers
            for direction in DIRECTIONS
            if flows_through(move.flows, "throttled", host, direction)
        ]
        spans = phases(self.run, move, started, max(started, self._watched_until()))
        whole = PhaseSpan(move.quota_bytes_per_s, started, max(started, self._watched_until()))
        rates = tuple(self.rates.measure(whole, host, direction) for host, direction in busy)
        ends = [r.end_s for r in rates if r.end_s is not None]
        throttled_s = max(ends) if ends else None
        end = self._watched_until() if throttled_s is None else started + round(throttled_s * US)
        # Once nothing is copied any more there is nothing to judge: a broker may come back after that.
        spans = tuple(span for span in spans if span.first or span.begin_us < end)
        on_disks = self.manifest.parameters.get("storage", "disk") == "disk"  # a tiered log grows by little of a move
        return MoveMeasures(
            started_us=started,
            throttled_s=throttled_s,
            done_s=None if self.done is None else (self.done - started) / US,
            kip73_s=move.kip73_seconds,
            kip73_ratio=throttled_s / move.kip73_seconds if throttled_s and move.kip73_seconds > 0 else None,
            rates=rates,
            quotas=tuple(self._quota(host, side, spans, end) for host in move.brokers for side in SIDES),
            conservation=tuple(self._conservation(h, d, started, end) for h, d in busy),
            controls=self._controls(started, end),
            load=machine_load(
                self.run,
                started,
                end,
                move.window_s,
                [(s.begin_us, s.end_us) for s in spans],
                cores=own_cores(self.manifest),
            ),
            moved_s=self._moved(started, throttled_s),
            watched_s=max(0, (self.run.last_us() or 0) - started) / US,
            phases=tuple(self._phase(span, rates, spans) for span in spans),
            nics=tuple(self._nic(host, direction, whole, end) for host, direction in busy),
            isr=measure_isr(self.run, move, started, self.done or self._watched_until()),
            stuck=measure_stall(self.run, started),
            clients=measure_clients(self.run, started, self.done),
            burden=measure_burden(self.run, self.manifest.nics, move, started, self._watched_until()),
            left=self._hosts_of("broker.leaving", started),
            back=self._hosts_of("broker.back", started),
            rests=measure_rests(self.run, started, self._watched_until()),
            costs=measure_costs(self.run, move.brokers, started, self.done) if on_disks else None,
        )

    def _hosts_of(self, kind: str, started: int) -> tuple[str, ...]:
        until = self._watched_until()
        events = self.run.events_of((kind,))
        return tuple(sorted({event.host for event in events if event.host and started <= event.us <= until}))

    def _phase(self, span: PhaseSpan, whole: tuple[HostRates, ...], spans: tuple[PhaseSpan, ...]) -> PhaseMeasures:
        if len(spans) == 1 and span.first and span.last:
            rates = whole  # one phase from the start to the end is the whole move
        else:
            known = [r for r in whole if span.leaders_known or r.direction == "receive"]
            rates = tuple(self.rates.measure(span, r.host, r.direction) for r in known)
        begin_s, end_s = (span.begin_us - self.rates.started) / US, (span.end_us - self.rates.started) / US
        return PhaseMeasures(span.quota_bytes_per_s, begin_s, end_s, span.leaders_known, rates)

    def _moved(self, started: int, throttled_s: float | None) -> float | None:
        flying = self.run.gauge("move.in_flight", DRIVER)
        seen_flying = flying.t[(flying.t > started) & (flying.value > 0)]
        landed = flying.t[(flying.t > seen_flying[0]) & (flying.value == 0)] if len(seen_flying) else seen_flying
        seen = [s for s in (throttled_s, (int(landed[0]) - started) / US if len(landed) else None) if s is not None]
        return min(seen) if seen else None

    def _nic(self, host: str, direction: Direction, whole: PhaseSpan, end: int) -> NicPayload:
        part = self.run.nic_bytes(self.manifest.nics, host, direction).between(*self.rates.steady_span(end, whole))
        if len(part) < 2:
            return NicPayload(host, direction, None, 0.0)
        return NicPayload(host, direction, counted(part.value) * PAYLOAD / part.seconds, part.seconds)

    def _watched_until(self) -> int:
        """Return the instant until which samples must be there: the move's end, else the last sample."""
        return self.done or self.run.last_us() or 0

    def _quota(self, host: str, side: Side, spans: tuple[PhaseSpan, ...], end: int) -> QuotaPolls:
        polls, gap_s, different = self._polled(f"quota.{side}.rate", host, spans, end)
        _polls, _gap_s, unlisted = self._polled(f"quota.{side}.unlisted", host, spans, end, wanted=0.0)
        return QuotaPolls(host, side, polls, gap_s, different, unlisted)

    def _polled(
        self, metric: str, host: str, spans: tuple[PhaseSpan, ...], end: int, *, wanted: float | None = None
    ) -> tuple[int, float | None, tuple[tuple[float, float], ...]]:
        """Return how many polls, the longest time without one, and each (instant, value) other than `wanted`.

        Without `wanted` that is each phase's quota.
        """
        series = self.run.gauge(metric, host)
        polls: int = 0
        gaps: list[float | None] = []
        different: list[tuple[float, float]] = []
        for span in spans:
            until = min(end, span.end_us) if span.last else span.end_us
            inside = series.between(span.begin_us, until)
            t, value = inside.t, inside.value
            if until - span.begin_us >= GAP_S * US or (span.first and span.last):
                gaps.append(longest_gap_s(t, span.begin_us, until))
            if not span.last:
                # A poll's instant is that of its asking, and the next one is asked once it was answered: of the last
                # one before an edge, it is not known on which side of it the answer was made.
                t, value = t[:-1], value[:-1]
            polls += len(t)
            wrong = value != (span.quota_bytes_per_s if wanted is None else wanted)
            after_s = (t[wrong] - self.rates.started) / US
            different += zip(after_s.tolist(), value[wrong].tolist(), strict=True)
        known = [gap for gap in gaps if gap is not None]
        return polls, max(known) if gaps and len(known) == len(gaps) else None, tuple(different)

    def _conservation(self, host: str, direction: Direction, started: int, end: int) -> Conservation:
        """Return the conservation over the move and the control transfer: both must be quiet at the edges."""
        begin = min(started, self.run.event_us("control.started") or started)
        until = max(end, self.run.event_us("control.done") or end)
        client: float | None = 0.0
        if direction == "receive":
            client = counted_between(self.run.gauge("broker.bytes_in", host), begin, until)
        kinds: tuple[FlowKind, ...] = ("throttled", "control", "calibration")
        flows = [flows_through(self.move.flows, kind, host, direction) for kind in kinds]
        logs = [growth(self.run.flow_bytes(each), begin, until) for each in flows if each]
        return Conservation(
            host=host,
            direction=direction,
            nic_bytes=counted_between(self.run.nic_bytes(self.manifest.nics, host, direction), begin, until),
            log_bytes=sum_of_all([*logs, client]),
            client_bytes=client,
            background_bytes=background_bytes(self.move, (until - begin) / US),
        )

    def _controls(self, started: int, end: int) -> tuple[ControlTransfer, ...]:
        begin = self.run.event_us("throttle.in_force") or started
        until = max(end, self.run.event_us("control.done") or end)
        until = min(until, self.run.event_us("throttle.restored") or until)
        controls = []
        for host in self.move.brokers:
            flows = flows_through(self.move.flows, "control", host, "receive")
            if not flows:
                continue
            series = self.run.flow_bytes(flows)
            part = series.cut(*enclosing(series.t, begin, until))
            rate = windows(part, SECOND_S).rate
            grew = np.flatnonzero(np.diff(part.value) > 0) + 1
            last = int(part.t[grew[-1]]) if len(grew) else None
            listed = self.run.flow_bytes(flows_through(self.move.flows, "throttled", host, "receive"))
            both = None if last is None else _while_both(series, listed, int(part.t[grew[0] - 1]), last)
            controls.append(
                ControlTransfer(
                    host=host,
                    leaders=tuple(sorted({f.leader for f in flows})),
                    total_bytes=float(part.value[-1] - part.value[0]) if len(part) else 0.0,
                    peak_bytes_per_s=float(np.max(rate)) if len(rate) else None,
                    longest_gap_s=longest_gap_s(series.t, begin, until),
                    with_throttled_bytes=None if both is None else sum(both),
                    beside_throttled_bytes=None if both is None else both[0],
                )
            )
        return tuple(controls)


def _while_both(control: Series, listed: Series, first: int, last: int) -> tuple[float, float] | None:
    """Return what the control's and the throttled logs grew by from `first` on, until one had all; None: not known.

    Throttled logs that did not grow in that time have not arrived: they wait.
    """
    arrivals = listed.t[1:][np.diff(listed.value) > 0]
    until = min(last, int(arrivals[-1])) if len(arrivals) and int(arrivals[-1]) > first else last
    grown = growth(control, first, until), growth(listed, first, until)
    return None if grown[0] is None or grown[1] is None else (grown[0], grown[1])
