"""Measures of a throttled move to criteria. Pure: the same measures always give the same verdicts.

Criteria about rates are judged only on a network, a machine and a load that were seen to be as declared; facts
about records, configuration, leaders and the quota itself are judged in any case.
"""

from collections.abc import Callable, Iterable, Sequence

from results.criteria import batching_judgement as batching
from results.criteria import live_judgement as live
from results.criteria import model_judgement as model
from results.criteria import rate_judgement as rates
from results.criteria import scenario_judgement as scenario
from results.criteria import window_judgement as windows
from results.criteria.fact_judgement import judge_facts, judge_quotas
from results.criteria.frame import not_judged
from results.criteria.ground_judgement import judge_load, judge_nics
from results.criteria.log_judgement import judge_logs
from results.criteria.measures import MoveMeasures
from results.manifest import Manifest, Move
from results.verdict import Criterion, Direction

Place = tuple[str, str | None, Direction | None, str]
Part = Callable[[Manifest, Move, MoveMeasures], Iterable[Criterion]]
"""One or more criteria of a move."""


def bound(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`throttled-window`."""
    return windows.judge_windows(measures, move)


def steady(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`steady-mean`."""
    return windows.judge_steady(measures, move)


def long_mean(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`mean-bound`."""
    return windows.judge_mean(measures, move)


def settled(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`settled`."""
    return windows.judge_settled(measures, move)


def first_window(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`first-window`."""
    return windows.judge_first(measures, move)


def control(manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`control-unthrottled`."""
    return rates.judge_controls(measures, move, manifest.nics)


def kafka(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`broker-rate-agrees`."""
    return rates.judge_kafka(measures, move)


def conservation(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`nic-conservation`."""
    return rates.judge_conservation(measures, move)


def duration(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`duration-model`."""
    return model.judge_duration(measures, move)


def binding(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`binding`."""
    return model.judge_binding(measures, move)


def nic_bound(manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`nic-bound`."""
    return model.judge_nic_bound(measures, move, manifest.nics)


def isr_kept(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`isr-kept`."""
    return live.judge_isr(measures, move)


def stuck_noticed(manifest: Manifest, _move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`stuck-noticed`."""
    patience = manifest.parameters.get("patience")
    return live.judge_stuck(measures, patience if isinstance(patience, int | float) else None)


def changed_twice(_manifest: Manifest, _move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`throttle-changed`."""
    return scenario.judge_changes(measures)


def all_restarted(_manifest: Manifest, move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`brokers-restarted`."""
    return scenario.judge_restarts(measures, move)


def live_records(manifest: Manifest, _move: Move, _measures: MoveMeasures) -> list[Criterion]:
    """`live-records`."""
    return live.judge_live_records(manifest.facts.live)


def fetching(manifest: Manifest, move: Move, _measures: MoveMeasures) -> list[Criterion]:
    """`replicas-fetching`."""
    return batching.judge_fetching(manifest.facts.batching, move)


def in_sync_unbounded(manifest: Manifest, _move: Move, measures: MoveMeasures) -> list[Criterion]:
    """`in-sync-unbounded`, of a move at once: in steps another broker leads in the midst of it."""
    return [] if manifest.parameters.get("mode") in batching.MODES else batching.judge_in_sync(measures)


STEPWISE: tuple[Part, ...] = (bound, long_mean, control, conservation)
"""What of the rates is judged of a move in steps that nobody writes to: between steps nothing is copied, so no rate is
steady, and no model says how long it takes.
"""
STEPWISE_LIVE: tuple[Part, ...] = (bound, long_mean, control)
"""The same while clients write: a NIC carries their bytes as well."""

RATES: tuple[Part, ...] = (bound, long_mean, steady, control, kafka, conservation, duration, binding)
"""Of a move with one quota that nobody writes to."""


def judged_by(
    about_rates: Sequence[Part] = RATES, facts: Sequence[Part] = (), *, under_load: bool = False
) -> Callable[[Manifest, MoveMeasures], list[Criterion]]:
    """A judgement from its parts: those about rates are judged on firm ground only, the facts in any case.

    A window over the bound fails on any ground: what copies unthrottled makes a machine busy. What holds of every move
    is added: quotas, records, configuration, leaders, logs, and the ground itself. With
    `under_load` the load is part of the ground, and its records are read back; a run that had a load without having to
    is judged so as well. Of a move in steps only what `STEPWISE` has is judged of the rates, and the steps besides.
    """

    def judge(manifest: Manifest, measures: MoveMeasures) -> list[Criterion]:
        move = manifest.move
        if move is None:
            raise ValueError(f"run {manifest.run_id}: its manifest has no move to judge")
        loaded = under_load or manifest.facts.live is not None or move.inbound_bytes_per_s > 0
        ground = [*judge_nics(manifest, move), judge_load(measures, move)]
        ground += live.judge_load_held(manifest.facts.live) if loaded else []
        stepwise = manifest.parameters.get("mode") in batching.MODES
        kept = (STEPWISE_LIVE if loaded else STEPWISE) if stepwise else about_rates
        found = [criterion for part in about_rates if part in kept for criterion in part(manifest, move, measures)]
        shaky = [c for c in ground if c.verdict == "inconclusive"]
        if shaky:
            sure = _over_for_sure(measures, move, shaky)
            found = [sure.get(_place(c)) or not_judged(c, shaky) for c in found]
        known = [*judge_quotas(measures, move), *judge_facts(manifest.facts)]
        for part in (*facts, *((live_records,) if loaded else ())):
            known += part(manifest, move, measures)
        known += batching.judge_batching(manifest.facts.batching) if stepwise else []
        return [*found, *known, *judge_logs(manifest.facts.logs, move.brokers), *ground]

    return judge


def _over_for_sure(measures: MoveMeasures, move: Move, shaky: Sequence[Criterion]) -> dict[Place, Criterion]:
    """The windows that are over the bound whatever the ground; a busy machine may have made readings late."""
    late = any(c.name == "machine-load" for c in shaky)
    judged = zip(windows.judge_windows(measures, move), windows.judge_windows(measures, move, late=late), strict=True)
    return {_place(plain): sure for plain, sure in judged if sure.verdict == "fail"}


def _place(found: Criterion) -> Place:
    return found.name, found.host, found.direction, found.expected


judge_move = judged_by()
"""All criteria of a move with one quota, in the order in which a report shows them."""
