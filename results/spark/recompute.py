"""Runs of a store judged again: measures by Spark SQL, criteria by the same judgement as when they were recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from results.contract.manifest import Manifest
from results.contract.store import Store, StoreError
from results.criteria.registry import Judgement, UnknownExperimentError, judge, rules_for
from results.spark.move_measures import measure_moves
from results.spark.relocation_measures import measure_relocations
from results.spark.sources import views
from results.spark.step_measures import measure_stepped


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Judgements by run id; `problems` names every run that could not be judged again, and why."""

    judgements: dict[str, Judgement]
    problems: tuple[str, ...]


def recompute(spark: SparkSession, store: Store, run_ids: Sequence[str] | None = None) -> Recomputed:
    """Judge runs again, all of the store's when no ids are given. Raises StoreError for an id that is not there.

    A corrupt manifest, a file that differs from its digest or an experiment without rules hides no other run.
    """
    scan = store.scan() if run_ids is None else None
    found = scan.manifests if scan else tuple(store.manifest(r) for r in run_ids or ())
    problems = list(scan.problems) if scan else []
    manifests = []
    for manifest in found:
        if problem := _problem(store, manifest):
            problems.append(problem)
        else:
            manifests.append(manifest)
    if not manifests:
        return Recomputed({}, tuple(problems))
    # An incident was judged by its file's own sentences: there is nothing to measure again.
    judgements = {m.run_id: judge(m, None, None) for m in manifests if m.incident is not None}
    manifests = [m for m in manifests if m.incident is None]
    if not manifests:
        return Recomputed(judgements, tuple(problems))
    with views(spark, store, manifests):
        moves = [m for m in manifests if m.steps is None and m.relocation is None]
        measures = measure_moves(spark, moves) if moves else {}
        measures |= measure_stepped(spark, [m for m in manifests if m.steps is not None])
        measures |= measure_relocations(spark, [m for m in manifests if m.relocation is not None])
    judgements |= {
        m.run_id: Judgement(tuple(rules_for(m.experiment).judge(m, measures[m.run_id])), measures[m.run_id])
        for m in manifests
    }
    return Recomputed(judgements, tuple(problems))


def _problem(store: Store, manifest: Manifest) -> str | None:
    try:
        rules_for(manifest.experiment)
        store.verify(manifest.run_id)
    except (UnknownExperimentError, StoreError) as error:
        return f"run {manifest.run_id}: {error}"
    if any(each is not None for each in (manifest.incident, manifest.steps, manifest.relocation)):
        return None
    return None if manifest.move is not None else f"run {manifest.run_id}: its manifest has no move"
