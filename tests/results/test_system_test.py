"""The run of one of Apache's system tests: its verdict, and its duration as the value of a series."""

from dataclasses import replace

import pytest

from results.contract.manifest import new_run_id
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.store import RunData, Store
from results.criteria import judge
from results.criteria.catalogue.system_test import DURATION, ENDED, NAME
from results.nights.ingest import rows_of
from results.nights.values import FAILED
from results.report.render import render

AT_US = 1_764_000_000_000_000


@pytest.fixture
def manifest(make_run):
    return replace(
        make_run().manifest, experiment="kafkatest", criteria=(NAME,), parameters={"test": "a.A.test_a"}, move=None
    )


def ended(status, summary=""):
    return events_table([Event(AT_US, ENDED, "a", "driver", {"status": status, "seconds": 12.5, "summary": summary})])


@pytest.mark.parametrize(
    ("status", "verdict", "why"),
    [
        ("PASS", "pass", "it passed in 12.5 s"),
        ("FAIL", "fail", "TimeoutError: 400 s"),
        ("FLAKY", "fail", "it passed only when repeated: TimeoutError: 400 s"),
        ("IGNORE", "inconclusive", "ducktape reports IGNORE"),
    ],
)
def test_the_verdict_follows_what_ducktape_reports(manifest, status, verdict, why):
    found = judge(manifest, samples_table([]), ended(status, "\nTimeoutError: 400 s\nmore"))
    assert [(each.verdict, each.why) for each in found.criteria if each.name == NAME] == [(verdict, why)]
    assert found.verdict == verdict


def test_without_its_end_nothing_is_known_of_a_test(manifest):
    assert judge(manifest, samples_table([]), events_table([])).verdict == "inconclusive"


def test_a_run_in_the_store_has_its_duration_as_a_value(manifest, tmp_path):
    store = Store.open(tmp_path)
    for status, samples in (("PASS", [Sample(AT_US, "driver", DURATION, 12.5)]), ("FAIL", [])):
        tables = samples_table(samples), ended(status)
        judgement = judge(manifest, *tables)
        run = replace(manifest, run_id=new_run_id("kafkatest"), verdict=judgement.verdict)
        store.commit(RunData(run, *tables, list(judgement.criteria)))
        found = {row["metric"]: row for row in rows_of(store, run.run_id, {})}
        assert found[FAILED]["value"] == (0.0 if status == "PASS" else 1.0)
        assert (DURATION in found) == (status == "PASS")
        if status == "PASS":
            assert (found[DURATION]["value"], found[DURATION]["better"]) == (12.5, "lower")


def test_the_report_shows_the_test_its_arguments_and_the_reason(manifest):
    manifest = replace(manifest, parameters={"test": "a.A.test_a", "argument.bounce": "true"})
    tables = samples_table([]), ended("FAIL", "TimeoutError: 400 s")
    found = judge(manifest, *tables)
    page = render(replace(manifest, verdict=found.verdict), *tables, found.criteria, found.measures)
    for text in ("test=a.A.test_a bounce=true", "TimeoutError: 400 s", "system_test.ended"):
        assert text in page
