from dataclasses import replace

from results.criteria import judge
from testbed.runner.executor import measured
from tests.results.synthetic import synthetic_run


def test_a_criterion_is_kept_when_all_of_it_was_judged_and_none_failed():
    run = synthetic_run()
    judgement = judge(run.manifest, run.samples, run.events)
    [good] = [each for each in judgement.criteria if each.name == "records-intact"]
    named = [
        replace(good, name=name, verdict=verdict)
        for name, verdict in (
            ("kept", "pass"),
            ("open", "pass"),
            ("open", "inconclusive"),
            ("broken", "inconclusive"),
            ("broken", "fail"),
        )
    ]
    found = measured(run.manifest, replace(judgement, criteria=tuple(named)))
    assert (found.failed, found.kept) == (("broken",), ("kept",))


def test_a_run_that_only_what_explains_it_leaves_open_is_sound():
    run = synthetic_run()
    judgement = judge(run.manifest, run.samples, run.events)
    [good] = [each for each in judgement.criteria if each.name == "records-intact"]
    for name, sound in (("duration-formula", True), ("steady-mean", False)):
        criteria = (good, replace(good, name=name, verdict="inconclusive"))
        assert measured(run.manifest, replace(judgement, criteria=criteria)).sound is sound
    assert not measured(run.manifest, judgement).sound
