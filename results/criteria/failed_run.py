"""The findings of a run whose experiment ended early: why, and the brokers that stood still meanwhile."""

from typing import Any

from results.contract.manifest import Manifest
from results.contract.verdict import Finding
from results.criteria.catalogue.jvm_pauses import judge_jvms
from results.criteria.findings import finding
from results.criteria.jvm_measures import METRICS, jvm_measures
from results.criteria.series import RunSeries

RUN_COMPLETE = "run-complete"


def judge_failed(manifest: Manifest, samples: Any, events: Any) -> tuple[Finding, ...]:
    """Return `run-complete`, which is inconclusive, and `jvm-pauses` of each broker that explains it.

    Take samples and events as Arrow tables or pandas DataFrames.
    """
    expected = "the experiment runs to its end"
    ended = finding(RUN_COMPLETE, expected, "inconclusive", manifest.failure, observed=None, series=("events",))
    return (ended, *_stood_still(RunSeries(samples, events)))


def _stood_still(run: RunSeries) -> list[Finding]:
    hosts = sorted({host for metric in METRICS for host in run.of_metric(metric)["host"].to_pylist()})
    instants = [us for metric in METRICS for us in run.of_metric(metric)["us"].to_pylist()]
    if not instants:
        return []
    found = judge_jvms(jvm_measures(run, hosts, [(min(instants), max(instants))]), None)
    return [each for each in found if each.verdict != "pass"]
