"""Measures of a throttled move to criteria. Pure: the same measures always give the same verdicts.

Criteria about rates are judged only on a network, a machine and a load that were seen to be as declared; facts
about records, configuration, leaders and the quota itself are judged in any case.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from results.contract.manifest import Manifest, Move
from results.contract.verdict import Direction, Finding
from results.criteria import batching_judgement as batching
from results.criteria import live_judgement as live
from results.criteria import model_judgement as model
from results.criteria import pace_judgement as pace
from results.criteria import rate_judgement as rates
from results.criteria import scenario_judgement as scenario
from results.criteria import window_judgement as windows
from results.criteria.fact_judgement import judge_facts, judge_quotas
from results.criteria.frame import not_judged
from results.criteria.ground_judgement import judge_load, judge_nics
from results.criteria.left_out import LeftOut
from results.criteria.log_judgement import judge_logs
from results.criteria.measures import MoveMeasures

Place = tuple[str, str | None, Direction | None, str]
Part = Callable[[Manifest, Move, MoveMeasures], Iterable[Finding]]
"""One or more criteria of a move."""


def bound(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`throttled-window`."""
    return windows.judge_windows(measures, move)


def steady(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`steady-mean`."""
    return windows.judge_steady(measures, move)


def long_mean(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`long-window-bound`."""
    return windows.judge_mean(measures, move)


def settled(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`rate-after-throttle-change`."""
    return windows.judge_settled(measures, move)


def first_window(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`first-window`."""
    return windows.judge_first(measures, move)


def control(manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`control-unthrottled`."""
    return rates.judge_controls(measures, move, manifest.nics)


def kafka(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`broker-rate-agrees`."""
    return rates.judge_kafka(measures, move)


def conservation(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`nic-conservation`."""
    return rates.judge_conservation(measures, move)


def duration(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`duration-model`."""
    return model.judge_duration(measures, move)


def binding(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`bottleneck-as-modelled`."""
    return model.judge_binding(measures, move)


def nic_bound(manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`nic-bound`."""
    return model.judge_nic_bound(measures, move, manifest.nics)


def isr_kept(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`no-isr-shrink`."""
    return live.judge_isr(measures, move)


def stuck_noticed(manifest: Manifest, _move: Move, measures: MoveMeasures) -> list[Finding]:
    """`stall-detected`."""
    patience = manifest.parameters.get("patience")
    return live.judge_stuck(measures, patience if isinstance(patience, int | float) else None)


def changed_twice(_manifest: Manifest, _move: Move, measures: MoveMeasures) -> list[Finding]:
    """`throttle-changed`."""
    return scenario.judge_changes(measures)


def all_restarted(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`brokers-restarted`."""
    return scenario.judge_restarts(measures, move)


def live_records(manifest: Manifest, _move: Move, _measures: MoveMeasures) -> list[Finding]:
    """`live-records`."""
    return live.judge_live_records(manifest.facts.live)


def fetching(manifest: Manifest, move: Move, _measures: MoveMeasures) -> list[Finding]:
    """`replicas-fetching`."""
    return batching.judge_fetching(manifest.facts.batching, move)


def in_sync_unbounded(manifest: Manifest, _move: Move, measures: MoveMeasures) -> list[Finding]:
    """`in-sync-unbounded`, of a move at once: in steps another broker leads in the midst of it."""
    return [] if manifest.parameters.get("mode") in batching.MODES else batching.judge_in_sync(measures)


def steady_in_steps(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`steady-mean`."""
    return pace.judge_steady_in_steps(measures, move)


def duration_in_steps(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`duration-model`."""
    return pace.judge_duration_in_steps(measures, move)


def binding_in_steps(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Finding]:
    """`bottleneck-as-modelled`."""
    return pace.judge_binding_in_steps(measures, move)


STEPWISE: Mapping[Part, Part] = {bound: bound, long_mean: long_mean, control: control}
"""What of the rates is judged of any move in steps, and how."""
PACED: Mapping[Part, Part] = {steady: steady_in_steps, duration: duration_in_steps, binding: binding_in_steps}
"""The same of one that has a model of its batches."""
UNJUDGED: Mapping[Part, tuple[str, str]] = {
    steady: ("steady-mean", ""),
    duration: ("duration-model", ""),
    binding: ("bottleneck-as-modelled", ""),
    kafka: (
        "broker-rate-agrees",
        "Kafka divides by the time since its oldest sample began: after a rest that is not the time the logs grew in",
    ),
    settled: (
        "rate-after-throttle-change",
        "11 s have as many rests as happen to lie in them: only longer times make up for them",
    ),
    first_window: ("first-window", "the first 11 s are of the first batches, however many those are"),
    conservation: ("nic-conservation", "a NIC carries what clients write and read as well"),
    nic_bound: ("nic-bound", "a NIC rests when the steps do"),
}
"""What each part's criterion is called, and why it may not be judged in steps; without words the move's model says."""

RATES: tuple[Part, ...] = (bound, long_mean, steady, control, kafka, conservation, duration, binding)
"""Of a move with one quota that nobody writes to."""


@dataclass(frozen=True, slots=True)
class MoveJudge:
    """A judgement from its parts: those about rates are judged on firm ground only, the facts in any case.

    A window over the bound fails on any ground: what copies unthrottled makes a machine busy. What holds of every move
    is added: quotas, records, configuration, leaders, logs, and the ground itself. With
    `under_load` the load is part of the ground, and its records are read back; a run that had a load without having to
    is judged so as well. Of a move in steps only what can be is judged of the rates (`left_out` has the rest), and the
    steps besides.
    """

    about_rates: Sequence[Part] = RATES
    facts: Sequence[Part] = ()
    under_load: bool = False

    def __call__(self, manifest: Manifest, measures: MoveMeasures) -> list[Finding]:
        """All criteria, in the order in which a report shows them."""
        move = _move_of(manifest)
        loaded = self._loaded(manifest, move)
        ground = [*judge_nics(manifest, move), judge_load(measures, move)]
        ground += live.judge_load_held(manifest.facts.live) if loaded else []
        parts = [part for _asked, part in self._parts(manifest, move) if part is not None]
        found = [criterion for part in parts for criterion in part(manifest, move, measures)]
        shaky = [c for c in ground if c.verdict == "inconclusive"]
        if shaky:
            sure = _over_for_sure(measures, move, shaky)
            found = [sure.get(_place(c)) or not_judged(c, shaky) for c in found]
        known = [*judge_quotas(measures, move), *judge_facts(manifest.facts)]
        for part in (*self.facts, *((live_records,) if loaded else ())):
            known += part(manifest, move, measures)
        known += batching.judge_batching(manifest.facts.batching) if _in_steps(manifest) else []
        return [*found, *known, *judge_logs(manifest.facts.logs, move.brokers), *ground]

    def left_out(self, manifest: Manifest) -> tuple[LeftOut, ...]:
        """What is judged of the same move at once and not of this one, and why."""
        move = _move_of(manifest)
        return tuple(
            LeftOut(UNJUDGED[asked][0], UNJUDGED[asked][1] or move.model_why or "the run has no model of its batches")
            for asked, part in self._parts(manifest, move)
            if part is None
        )

    def _loaded(self, manifest: Manifest, move: Move) -> bool:
        return self.under_load or manifest.facts.live is not None or move.inbound_bytes_per_s > 0

    def _parts(self, manifest: Manifest, move: Move) -> list[tuple[Part, Part | None]]:
        """What is asked about rates, and what judges it of this run, if anything."""
        if not _in_steps(manifest):
            return [(part, part) for part in self.about_rates]
        kept = {**STEPWISE, **(PACED if move.batches_s else {})}
        if not self._loaded(manifest, move):
            kept[conservation] = conservation
        return [(part, kept.get(part)) for part in self.about_rates]


def judged_by(
    about_rates: Sequence[Part] = RATES, facts: Sequence[Part] = (), *, under_load: bool = False
) -> MoveJudge:
    """See `MoveJudge`."""
    return MoveJudge(tuple(about_rates), tuple(facts), under_load)


def _move_of(manifest: Manifest) -> Move:
    if manifest.move is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no move to judge")
    return manifest.move


def _in_steps(manifest: Manifest) -> bool:
    return manifest.parameters.get("mode") in batching.MODES


def _over_for_sure(measures: MoveMeasures, move: Move, shaky: Sequence[Finding]) -> dict[Place, Finding]:
    """The windows that are over the bound whatever the ground; a busy machine may have made readings late."""
    late = any(c.name == "machine-load" for c in shaky)
    judged = zip(windows.judge_windows(measures, move), windows.judge_windows(measures, move, late=late), strict=True)
    return {_place(plain): sure for plain, sure in judged if sure.verdict == "fail"}


def _place(found: Finding) -> Place:
    return found.name, found.host, found.direction, found.expected


judge_move = judged_by()
"""All criteria of a move with one quota, in the order in which a report shows them."""
