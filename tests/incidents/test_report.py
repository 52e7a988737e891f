"""An incident's run in a store: judged as it was, and reported on one page of its own."""

import json
import re
from dataclasses import replace

import pytest

from results.contract.manifest import IncidentRecord, Manifest, Records
from results.contract.schema import Event, Sample, events_table, samples_table
from results.contract.store import RunData, Store
from results.contract.verdict import Finding, overall
from results.criteria import judge
from results.criteria.replayed_run import ReplayedRun
from results.report import render
from results.report.incident import answer, render_incident
from results.spark.recompute import recompute
from tests.incidents.runs import at, event, manifest, tables
from tests.results.synthetic import synthetic_run

CRITERIA = (
    Finding("timeline", None, None, "all", 0.3, "ms late", "none", "pass", "fine", ("incident.entry",)),
    Finding("rate", "b2", "receive", "slow <b>", 13e6, "bytes/s", "none", "fail", "fast & wrong", ("log.bytes",)),
)


def a_run() -> Manifest:
    record = IncidentRecord(
        "small", "broken", 7, "It </script> happens.", "Wrongly.", ("rate",), {"name": "small"}, CRITERIA
    )
    run_id = "20261121T181500Z-incident-small-ab12cd"
    return replace(
        synthetic_run().manifest,
        run_id=run_id,
        experiment="incident-small",
        move=None,
        incident=record,
        verdict=overall(CRITERIA),
    )


def recorded():
    samples = [
        sample
        for t in range(20)
        for sample in (
            Sample(at(t), "b2", "nic.rx.bytes", 0.0),
            Sample(at(t), "b2", "log.bytes", max(0, t - 3) * 4e6, "orders", 0),
            Sample(at(t), "driver", "topic.isr", 2.0, "orders"),
            Sample(at(t), "driver", "move.moved", t / 20, "orders"),
            Sample(at(t), "driver", "load.latency", 0.02 * t, "clicks"),
            Sample(at(t), "right", "uplink.rx.bytes", t * 1e6),
            Sample(at(t), "b2", "quota.follower.rate", -1.0 if t < 5 else 5e6),
        )
    ]
    acted = {"planned_s": 3.0, "actual_s": 3.004, "trigger": "at 3s", "do": ["move orders to b2"], "expect": []}
    events = [
        Event(at(0), "incident.started", "small"),
        Event(at(3), "incident.entry", "move", None, acted),
        Event(at(15), "move.done", "orders"),
        Event(at(18), "incident.ended", "small"),
    ]
    return samples_table(samples), events_table(events)


def test_an_older_run_goes_through_the_store_with_its_criteria_as_they_were(tmp_path):
    store = Store.open(tmp_path)
    run_id = store.commit(RunData(a_run(), *recorded(), list(CRITERIA)))
    again = store.manifest(run_id)
    assert again.incident == a_run().incident
    assert judge(again, store.samples(run_id), store.events(run_id)).criteria == CRITERIA


def test_the_answer_is_that_of_the_verdict():
    """A run that fails, and of which something was not judged, once had the answer *Cannot say* below *Fail*."""
    record, (passed, failed) = a_run().incident, CRITERIA
    open_ = replace(failed, name="isr", verdict="inconclusive", why="nothing was sampled", observed=None)
    starts = {
        (passed, failed): "It fails rate, as expected: ",
        (passed, open_, failed): "It fails rate, as expected: ",
        (passed, open_): "Cannot say: isr: nothing was sampled.",
        (passed,): "Every expectation is met. The broken variant was expected to fail.",
        (): "Cannot say: nothing was judged.",
    }
    for criteria, start in starts.items():
        found = answer(record, criteria)
        assert found.startswith(start)
        assert ("Not judged: isr." in found) == (len(criteria) == 3)
        word = {"fail": "It fails", "inconclusive": "Cannot say", "pass": "Every"}[overall(criteria)]
        assert found.startswith(word)


def test_an_incident_that_cannot_be_judged_again_hides_no_other_run(tmp_path, monkeypatch):
    """Incidents are judged by the driver, where a missing key once ended all."""
    store = Store.open(tmp_path)
    run_id = store.commit(RunData(a_run(), *recorded(), list(CRITERIA)))
    other = replace(a_run(), run_id=run_id.replace("ab12cd", "ef34ab"))
    store.commit(RunData(other, *recorded(), list(CRITERIA)))

    def judged(manifest, samples, events):
        return {other.run_id: judge(manifest, samples, events)}[manifest.run_id]

    monkeypatch.setattr("results.spark.recompute.judge", judged)
    again = recompute(None, store)
    assert list(again.judgements) == [other.run_id]
    assert again.problems == (f"run {run_id}: KeyError('{run_id}')",)


def test_judged_again_from_a_store_it_is_what_it_was(tmp_path):
    store = Store.open(tmp_path)
    run_id = store.commit(RunData(a_run(), *recorded(), list(CRITERIA)))
    again = recompute(None, store)  # nothing is measured again, so no Spark is needed
    assert again.problems == ()
    assert again.judgements[run_id].criteria == CRITERIA


def test_its_page_draws_the_timeline_over_the_signals():
    page = render(a_run(), *recorded(), CRITERIA, judge(a_run(), *recorded()).measures)
    (data,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    charts = json.loads(data)
    assert [panel["id"] for panel in charts["panels"]] == ["rates", "moved", "uplinks", "latency", "isr"]
    assert charts["marks"] == [{"t": 3.004, "label": "move"}, {"t": 15.0, "label": "orders moved"}]
    lines = {line["label"]: line["values"] for line in charts["panels"][0]["lines"]}
    assert max(v for v in lines["orders on b2"] if v is not None) == 4.0
    assert {v for v in lines["throttle"] if v is not None} == {5.0}
    assert "It fails rate, as expected" in page
    assert re.search(r"\b13\sMB/s", page)
    assert "slow &lt;b&gt;" in page
    assert "It &lt;/script&gt; happens." in page


def test_brokers_with_other_rates_have_curves_of_their_own():
    rates = {"b1": 8e6, "b2": 5e6, "b3": 5e6}
    samples = [Sample(at(t), host, "quota.follower.rate", rate) for t in (5, 6) for host, rate in rates.items()]
    charts = render_incident(a_run(), samples_table(samples), recorded()[1], CRITERIA)["charts"]
    drawn = {line["label"]: {v for v in line["values"] if v is not None} for line in charts["panels"][0]["lines"]}
    assert drawn == {"throttle of b1": {8.0}, "throttle of b2, b3": {5.0}}


def test_every_chart_has_the_unit_in_which_its_table_gives_the_same_value():
    slowest_us, quota, moved, sent = 9_830_400, 5e6, 0.5, 25e6
    samples = [
        Sample(at(5), "producer-1", "client.produce.latency", 3.0, label=str(slowest_us)),
        Sample(at(5), "driver", "topic.isr", 2.0, "orders"),
        Sample(at(5), "driver", "move.moved", moved, "orders"),
        *(Sample(at(t), "b2", "quota.follower.rate", quota) for t in (5, 6)),
        *(Sample(at(t), "b2", "log.bytes", (t - 5) * quota, "orders", 0) for t in (5, 6)),
        *(Sample(at(t), "right", "uplink.rx.bytes", (t - 5) * sent) for t in (5, 6)),
    ]
    data = samples_table(samples), recorded()[1]
    page = render(a_run(), *data, CRITERIA, judge(a_run(), *data).measures)
    (found,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    drawn = {
        panel["id"]: max(value for line in panel["lines"] for value in line["values"] if value is not None)
        for panel in json.loads(found)["panels"]
    }
    units = dict(re.findall(r'id="chart-(\w+)"[^>]*data-unit="([^"]+)"', page)) or {
        panel["id"]: panel["unit"] for panel in json.loads(found)["panels"] if "unit" in panel
    }
    _due, latencies_s = ReplayedRun(a_run(), *data).latencies()
    table = {
        "latency": (max(latencies_s), {"ms": 1e3}),
        "rates": (quota, {"MB/s": 1e-6}),
        "moved": (moved, {"%": 100}),
        "uplinks": (sent, {"Mbit/s": 8e-6}),
        "isr": (2, {"replicas": 1}),
    }
    assert drawn.keys() == table.keys()
    for key, (value, factors) in table.items():
        assert drawn[key] == pytest.approx(value * factors[units[key]]), key


def test_a_page_without_signals_is_a_page_all_the_same():
    _, events = recorded()
    page = render(a_run(), samples_table([]), events, CRITERIA, judge(a_run(), *recorded()).measures)
    assert "What happened" in page


def test_names_of_before_schema_3_are_read(tmp_path):
    document = json.loads(a_run().to_json()) | {"schema": 2, "parameters": {"practice": "faulty", "seed": 7}}
    names = {"variant": "practice", "variant_summary": "practice_summary", "expected_failures": "fails"}
    record = {names.get(key, key): value for key, value in document["incident"].items()}
    for key in ("entries", "brokers", "uplinks_bps"):
        del record[key]
    again = Manifest.from_document(document | {"incident": record | {"practice": "faulty"}})
    assert again.incident == a_run().incident
    assert again.parameters == {"variant": "broken", "seed": 7}


def test_a_run_is_judged_again_from_the_store_alone(tmp_path):
    run = manifest(records=Records(9, 9, 0, 0, 0))
    acted = event(2, "incident.entry", "entry 5", planned_s=2.0, actual_s=2.0)
    data = tables([], [acted])
    judged = judge(run, *data)
    store = Store.open(tmp_path)
    run_id = store.commit(RunData(run, *data, list(judged.criteria)))
    assert judge(store.manifest(run_id), store.samples(run_id), store.events(run_id)).criteria == judged.criteria
    assert {c.name: c.verdict for c in judged.criteria}["timeline"] == "inconclusive"
    assert recompute(None, store).judgements[run_id].criteria == judged.criteria


def charts_of(samples):
    return render_incident(a_run(), samples_table(samples), recorded()[1], CRITERIA)["charts"]


def test_a_gap_breaks_a_curve_and_is_no_row_of_the_table():
    """Lines went straight through an outage. A throttle that was removed and set again seemed to hold in between."""
    seen = [t for t in range(20) if not 5 <= t <= 12]
    samples = [Sample(at(t), "driver", "move.moved", t / 20, "orders") for t in seen]
    samples += [Sample(at(t), "b2", "quota.follower.rate", -1.0 if 5 <= t <= 12 else 5e6) for t in range(20)]
    charts = charts_of(samples)
    assert charts["gap_s"] == 3
    for panel in charts["panels"]:
        (line,) = panel["lines"]
        assert [t for t, v in zip(panel["t"], line["values"], strict=True) if v is None] == [8.5]
    page = render(a_run(), samples_table(samples), recorded()[1], CRITERIA, judge(a_run(), *recorded()).measures)
    assert "<td>8.5</td>" not in page
    script = incident_script(page)
    assert "spanGaps: true" not in script and "made.fill(undefined" in script


def test_a_chart_of_zeros_has_an_axis_with_different_labels():
    """The axis went from 0 to 1e-9, and each of its labels was 0."""
    samples = [Sample(at(t), "driver", "move.moved", 0.0, "orders") for t in range(5)]
    page = render(a_run(), samples_table(samples), recorded()[1], CRITERIA, judge(a_run(), *recorded()).measures)
    assert "|| 1) * 1.08" in incident_script(page)


def incident_script(page):
    return next(text for text in re.findall(r"<script>(.*?)</script>", page, re.DOTALL) if "gap_s" in text)


def test_a_table_has_no_powers_of_ten():
    slow = [Sample(at(5), "producer-1", "client.produce.latency", 3.0, label="12345678")]
    page = render(a_run(), samples_table(slow), recorded()[1], CRITERIA, judge(a_run(), *recorded()).measures)
    assert "e+04" not in page


@pytest.mark.parametrize(
    ("observed", "unit", "shown"),
    [
        (0.8532, "fraction", "85.3 %"),
        (3.2e9, "bytes", "3.2 GB"),
        (1.0, "partitions", "1 partition"),
        (2.0, "partitions", "2 partitions"),
        (0.5, "of declared", "0.5 of declared"),
        (2.0, "wrong", "2 wrong"),
    ],
)
def test_an_observed_value_has_the_form_of_all_reports(observed, unit, shown):
    finding = replace(CRITERIA[0], observed=observed, unit=unit)
    (row,) = render_incident(a_run(), *recorded(), [finding])["rows"]
    assert row.observed == shown


def test_a_long_name_of_an_entry_is_not_drawn_beyond_the_picture():
    page = render(a_run(), *recorded(), CRITERIA, judge(a_run(), *recorded()).measures)
    script = incident_script(page)
    assert "x >= w ? x - w : right - w" in script
    assert 'label.slice(0, -2) + "…"' in script
