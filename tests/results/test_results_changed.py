"""Runs that were recorded by older rules: what they were recorded as stays, and what differs is named."""

from dataclasses import replace

import pytest

from results.contract.verdict import Finding, overall
from results.criteria import judge
from results.criteria.judgement import Changed, changes
from results.report import render
from tests.incidents.test_report import a_run, recorded
from tests.results.relocated import relocated
from tests.results.stepped import stepped
from tests.results.synthetic import synthetic_run
from tests.results.test_results_report import Page


def criterion(name, verdict, host=None, direction=None):
    return Finding(name, host, direction, "that", "seen", "", "none", verdict, f"because {verdict}", ("log.bytes",))


def test_what_is_judged_as_it_was_is_not_told():
    same = [criterion("records-intact", "pass"), criterion("steady-mean", "pass", "b1", "transmit")]
    assert changes(same, same) == ()
    assert changes(same, [replace(each, why="in other words") for each in same]) == ()


def test_what_is_new_what_is_gone_and_what_became_of_the_rest_is_told():
    recorded = [criterion("a", "pass"), criterion("b", "pass", "b1", "transmit"), criterion("gone", "fail")]
    again = [criterion("new", "inconclusive", "b2"), criterion("b", "fail", "b1", "transmit"), criterion("a", "pass")]
    assert [str(each) for each in changes(recorded, again)] == [
        "new (b2): not judged when it was recorded, inconclusive now: because inconclusive",
        "b (b1 transmit): pass when it was recorded, fail now: because fail",
        "gone: fail when it was recorded, not judged now: because fail",
    ]


def test_a_run_from_before_the_logs_were_watched_is_recorded_as_passed_and_the_page_names_the_difference():
    run = synthetic_run()
    by_old_rules = [c for c in run.judged().criteria if c.name != "logs-clean"]
    old = replace(run.manifest, verdict=overall(by_old_rules), facts=replace(run.manifest.facts, logs=None))
    again = judge(old, run.samples, run.events)
    assert (old.verdict, again.verdict) == ("pass", "inconclusive")
    found = changes(by_old_rules, again.criteria)
    assert {each.criterion for each in found} == {"logs-clean (b1)", "logs-clean (b2)"}
    text = "".join(Page(render(old, run.samples, run.events, again.criteria, again.measures, found)).text)
    assert "It was recorded as Pass" in text
    assert text.count("not judged when it was recorded, inconclusive now: the run did not watch") == 2
    unchanged = render(run.manifest, run.samples, run.events, run.judged().criteria, run.judged().measures)
    assert "when it was recorded" not in "".join(Page(unchanged).text)


@pytest.mark.parametrize(
    "run", [relocated, stepped, lambda: (a_run(), *recorded())], ids=["moved", "steps", "incident"]
)
def test_every_page_names_the_difference(run):
    manifest, samples, events = run()
    found = judge(manifest, samples, events)
    changed = [Changed("logs-clean", "pass", "fail", "a line is not known")]
    texts = [
        "".join(Page(render(manifest, samples, events, found.criteria, found.measures, each)).text)
        for each in ((), changed)
    ]
    assert ["pass when it was recorded, fail now: a line is not known" in text for text in texts] == [False, True]


@pytest.mark.parametrize("run", [stepped, lambda: (a_run(), *recorded())], ids=["steps", "incident"])
def test_without_criteria_no_page_claims_anything(run):
    manifest, samples, events = run()
    text = "".join(Page(render(manifest, samples, events, [], judge(manifest, samples, events).measures)).text)
    assert "Inconclusive" in text
    assert "Cannot say: nothing was judged." in text
