"""A move in steps is judged by its rate, its time and what binds, its rests allowed for; what is not is told."""

from dataclasses import replace

import pytest

from results.criteria import judge
from results.criteria.judgement import skipped, skipped_lines
from results.criteria.measures import Rests
from tests.results.moves import simulate
from tests.results.scenes import one_to_two, two_node
from tests.results.test_results_batching import FINE

RESTS = ((13.0, 14.0), (27.0, 28.2), (41.0, 42.0))
BATCHES = (14.0, 28.0, 42.0, 56.0)
PACED = ("steady-mean", "duration-model", "bottleneck-as-modelled")


def in_steps(run, **move):
    manifest = run.manifest
    return replace(
        manifest,
        parameters={**manifest.parameters, "mode": "batched"},
        facts=replace(manifest.facts, batching=FINE),
        move=replace(manifest.move, **move),
    )


def judged(scene, **move):
    run = simulate(scene)
    manifest = in_steps(run, **move)
    return judge(manifest, run.samples, run.events), manifest


def verdicts(scene, **move):
    found, _manifest = judged(scene, **move)
    return {each.name: each.verdict for each in found.criteria if each.name in PACED}


def test_a_move_that_rests_between_batches_passes_by_its_model():
    found, manifest = judged(two_node(rests=RESTS, batches_s=BATCHES))
    assert found.verdict == "pass"
    assert {each.name for each in found.criteria if each.verdict == "pass"} >= set(PACED)
    assert skipped(manifest) == ()
    # The port of the sensor knows rests as well.
    assert {each.verdict for each in found.criteria if each.name == "broker-rate-agrees"} == {"pass"}
    rests = found.measures.rests
    assert rests.count == 3
    assert 3.2 <= rests.total_s <= 3.2 + 3 * 0.6
    assert "3 rests were" in next(each.why for each in found.criteria if each.name == "duration-model")


def test_one_that_is_slower_than_its_rests_explain_fails():
    slow = two_node(rests=RESTS, batches_s=BATCHES, real_quota=(("b2", 0.0, 999.0, 8e6),), told_quota=False)
    found = verdicts(slow)
    assert (found["steady-mean"], found["duration-model"]) == ("fail", "fail")


def test_one_that_is_faster_than_the_quota_fails():
    loose = (("b1", 0.0, 999.0, 13e6), ("b2", 0.0, 999.0, 13e6))
    found = verdicts(two_node(rests=RESTS, batches_s=BATCHES, real_quota=loose, told_quota=False))
    # It is over before three windows of its rate could be seen.
    assert (found["steady-mean"], found["duration-model"]) == ("fail", "fail")
    found = verdicts(two_node(0.0, 700e6, rests=RESTS, batches_s=BATCHES, real_quota=loose, told_quota=False))
    assert found["steady-mean"] == "fail"


def test_another_end_than_the_models_that_carries_most_fails():
    run = simulate(two_node(rests=RESTS, batches_s=BATCHES))
    [sent] = [e for e in run.manifest.move.expected if e.direction == "transmit"]
    wrong = (replace(sent, host="b2"), replace(sent, host="b1", direction="receive"))
    manifest = in_steps(run, expected=wrong)
    found = {each.name: each.verdict for each in judge(manifest, run.samples, run.events).criteria}
    assert found["bottleneck-as-modelled"] == "fail"


@pytest.mark.parametrize(
    ("scene", "why"),
    [
        (two_node(batches_s=BATCHES), "the list of reassignments was not polled"),
        (two_node(rests=((13.0, 24.5),), batches_s=BATCHES), "longer than what the throttle makes up for"),
        (two_node(rests=RESTS, batches_s=(0.5, *BATCHES)), "the quota does not decide"),
        (
            two_node(rests=RESTS, batches_s=BATCHES, gap=("driver", 20.0, 24.0)),
            "the list of reassignments was not polled for",
        ),
    ],
    ids=["no looks", "long rests", "small batches", "a gap"],
)
def test_rests_that_are_not_known_or_decide_themselves_leave_it_open(scene, why):
    found, _manifest = judged(scene)
    for name in ("steady-mean", "duration-model"):
        [each] = [each for each in found.criteria if each.name == name]
        assert (each.verdict, why in each.why) == ("inconclusive", True), each.why


def test_steps_that_end_within_the_quotas_window_have_no_duration():
    found, _manifest = judged(two_node(rests=RESTS, batches_s=BATCHES), model_seconds=10.0)
    [each] = [each for each in found.criteria if each.name == "duration-model"]
    assert (each.verdict, "the quota holds over 11 s" in each.why) == ("inconclusive", True)


def test_what_has_no_model_is_told_to_be_not_judged_and_why():
    found, manifest = judged(one_to_two(2e6), model_why="what is written meanwhile is not modelled")
    assert not set(PACED) & {each.name for each in found.criteria}
    told = {each.name: each.why for each in skipped(manifest)}
    assert set(told) == set(PACED)
    assert told["duration-model"] == "what is written meanwhile is not modelled"
    assert skipped_lines(skipped(manifest))[0].startswith("NOT JUDGED")
    assert skipped(simulate(two_node()).manifest) == ()


def test_a_rest_without_any_has_no_length():
    assert Rests(0, 0.0, 0.3).mean_s == 0.0


def test_where_no_host_carries_everything_the_steady_mean_is_not_judged():
    run = simulate(two_node(rests=RESTS, batches_s=BATCHES))
    more = replace(run.manifest.move.expected[1], host="b1", direction="receive", bytes=1000)
    manifest = in_steps(run, expected=(*run.manifest.move.expected, more))
    [found] = skipped(manifest)
    assert (found.name, "changes from batch to batch" in found.why) == ("steady-mean", True)
    assert "steady-mean" not in {each.name for each in judge(manifest, run.samples, run.events).criteria}
