"""A run of given samples, judged and put into a store."""

from dataclasses import replace

from results.contract.store import RunData
from results.criteria import judge


def commit_judged(store, manifest, samples, events):
    """Its id, and its judgement."""
    judgement = judge(manifest, samples, events)
    data = RunData(replace(manifest, verdict=judgement.verdict), samples, events, list(judgement.criteria))
    return store.commit(data), judgement
