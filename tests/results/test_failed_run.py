"""A run whose experiment ended early: what it keeps, what is said of it, and its page."""

from dataclasses import replace

from results.contract.manifest import Manifest
from results.contract.store import RunData, Store
from results.criteria import judge
from results.criteria.judgement import OWN_ERROR, has_ended, noisy, skipped
from results.report import render
from tests.results.test_jvm_pauses import with_jvm

WHY = "preload: nothing came for 60 s"


def failed(run):
    return replace(run.manifest, move=None, failure=WHY)


def test_it_is_inconclusive_and_says_why(make_run):
    run = make_run()
    judgement = judge(failed(run), run.samples, run.events)
    assert judgement.verdict == "inconclusive"
    assert (judgement.criteria[0].name, judgement.criteria[0].why) == ("run-complete", WHY)
    assert not noisy(judgement)
    assert skipped(failed(run)) == ()


def test_it_is_stored_with_its_samples_and_judged_again(make_run, tmp_path):
    run = make_run()
    manifest = failed(run)
    judgement = judge(manifest, run.samples, run.events)
    store = Store.open(str(tmp_path / "store"))
    data = RunData(replace(manifest, verdict="inconclusive"), run.samples, run.events, list(judgement.criteria))
    store.commit(data)
    read = store.manifest(manifest.run_id)
    assert read.failure == WHY
    again = judge(read, store.samples(manifest.run_id), store.events(manifest.run_id))
    assert again.criteria == judgement.criteria
    assert store.samples(manifest.run_id).num_rows == run.samples.num_rows


def test_its_page_has_the_reason_and_the_last_events_and_escapes_them(make_run):
    run = make_run()
    manifest = replace(failed(run), failure="<b>ValueError</b>: x (probe.py:3)")
    judgement = judge(manifest, run.samples, run.events)
    page = render(manifest, run.samples, run.events, judgement.criteria, judgement.measures)
    assert "&lt;b&gt;ValueError&lt;/b&gt;: x (probe.py:3)" in page
    assert "run-complete" in page and "move.started" in page


def test_a_manifest_without_the_field_is_whole(make_run):
    document = make_run().manifest.to_json()
    assert Manifest.from_json(document.replace(' "failure": "",\n', "")).failure == ""


def test_a_broker_that_collects_garbage_all_the_time_is_named(make_run):
    run = with_jvm(make_run(), lambda t: 0.6 * t, lambda t: max(0, t), lambda _t: 355)
    judgement = judge(failed(run), run.samples, run.events)
    named = [each for each in judgement.criteria if each.name == "jvm-pauses"]
    assert {each.host for each in named} == {"b1", "b2"}
    assert "the heap is too small for what the broker holds" in named[0].why


def test_kafka_kept_it_from_its_end_unless_the_machine_or_the_testbed_explains_it(make_run):
    run, robbed = make_run(), make_run(steal=0.2)
    assert has_ended(judge(run.manifest, run.samples, run.events)) is True
    assert has_ended(judge(failed(run), run.samples, run.events)) is False
    own = replace(failed(run), failure=f"{OWN_ERROR}KeyError: 'Rate' (brokers.py:12)")
    assert has_ended(judge(own, run.samples, run.events)) is None
    judgement = judge(failed(robbed), robbed.samples, robbed.events)
    assert has_ended(judgement) is None
    [load] = [each for each in judgement.criteria if each.name == "machine-load"]
    assert "of the CPU was stolen in the worst of" in load.why
