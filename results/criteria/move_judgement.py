"""Measures of a throttled move to criteria. Pure: the same measures always give the same verdicts.

Criteria about rates are judged only on a network and a machine that were seen to be as declared; facts
about records, configuration, leaders and the quota itself are judged in any case.
"""

from dataclasses import replace

from results.criteria import rate_judgement as rates
from results.criteria.fact_judgement import judge_facts, judge_quotas
from results.criteria.ground_judgement import judge_load, judge_nics
from results.criteria.log_judgement import judge_logs
from results.criteria.measures import MoveMeasures
from results.manifest import Manifest
from results.verdict import Criterion


def judge_move(manifest: Manifest, measures: MoveMeasures) -> list[Criterion]:
    """All criteria of a throttled move, in the order in which a report shows them."""
    move = manifest.move
    if move is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no move to judge")
    ground = [*judge_nics(manifest, move), judge_load(measures, move)]
    about_rates = [
        *rates.judge_windows(measures, move),
        *(rates.judge_steady(measures, move) if move.fetch == "tuned" else ()),
        *rates.judge_controls(measures, move, manifest.nics),
        *rates.judge_kafka(measures, move),
        *rates.judge_conservation(measures, move),
    ]
    shaky = [c for c in ground if c.verdict == "inconclusive"]
    if shaky:
        about_rates = [_not_judged(c, shaky) for c in about_rates]
    quotas = judge_quotas(measures, move)
    logs = judge_logs(manifest.facts.logs, move.brokers)
    return [*about_rates, *quotas, *judge_facts(manifest.facts), *logs, *ground]


def _not_judged(criterion: Criterion, shaky: list[Criterion]) -> Criterion:
    first = shaky[0]
    where = " ".join(w for w in (first.host, first.direction) if w)
    why = f"not judged: {first.name} ({where}): {first.why}"
    if len(shaky) > 1:
        why += f"; and {len(shaky) - 1} more"
    return replace(criterion, verdict="inconclusive", why=why)
