"""What tests ask of judgements, and of a run of given samples that is put into a store."""

from dataclasses import replace

from results.contract.store import RunData
from results.criteria import judge


def commit_judged(store, manifest, samples, events):
    """Its id, and its judgement."""
    judgement = judge(manifest, samples, events)
    data = RunData(replace(manifest, verdict=judgement.verdict), samples, events, list(judgement.criteria))
    return store.commit(data), judgement


def named(judgement, name):
    return [c for c in judgement.criteria if c.name == name]


def verdicts(judgement, *names):
    return {c.verdict for c in judgement.criteria if c.name in names}


def not_passed(judgement):
    return {c.name for c in judgement.criteria if c.verdict != "pass"}
