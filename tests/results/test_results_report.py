"""The report is one file that needs nothing else, says the verdict first, and cannot be broken by a name."""

import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from results.contract.defect import DefectRecord
from results.contract.logs import HostLog, LogFinding
from results.contract.manifest import Records
from results.contract.schema import Sample, samples_table
from results.report import render
from results.report.page import answer, figures, observed, question, tidy
from results.report.render import embedded
from results.report.traffic import latency
from tests.results.moves import simulate
from tests.results.scenes import bounce, live_change, one_to_two
from tests.results.synthetic import EPOCH_US

VENDOR = Path(__file__).parents[2] / "results" / "report" / "vendor"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements as they nest, text, and scripts of a page; refuses what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text, self.scripts = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, k, v) for k, v in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, k, v) for k, v in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.open and self.open[-1] != "style":
            self.text.append(data)


def report(run, **changes):
    manifest = replace(run.manifest, **changes)
    judgement = run.judged()
    return render(manifest, run.samples, run.events, judgement.criteria, judgement.measures)


@pytest.mark.parametrize(
    ("options", "word", "opening"),
    [
        ({}, "Pass", "Yes: the highest 11 s window was 99."),
        ({"real_quota": 20e6}, "Fail", "No: throttled bytes in any quota window (b1 transmit)"),
        ({"nic_ratio": 0.8}, "Inconclusive", "Cannot say: NIC as declared (b1 transmit)"),
        ({"fetch": "default"}, "Pass", "Yes: the highest 11 s window was 103."),
        ({"without_metrics": ("log.bytes",)}, "Inconclusive", "Cannot say: throttled bytes in any quota window"),
    ],
)
def test_the_verdict_comes_first_and_in_words(make_run, options, word, opening):
    run = make_run(**options)
    page = Page(report(run))
    text = "".join(page.text)
    assert text.index(word) < text.index("Does Kafka 4.3.1 keep to a replication quota") < text.index("Criteria")
    assert tidy(opening) in text
    for criterion in run.judged().criteria:
        assert criterion.name in text
        assert tidy(criterion.why) in text
    words = [t for t in page.text if t in ("Pass", "Fail", "Inconclusive")]
    assert len(words) == 1 + len(run.judged().criteria)  # never by colour or shape alone


def test_broken_brokers_are_told_before_the_verdict(make_run):
    run = make_run()
    found = (
        DefectRecord("b1", "late-isr", "seconds=3", "2026-11-23T20:00:00Z", "<t-0> kept out"),
        DefectRecord("b2", "late-isr", "seconds=3"),
    )
    told = " ".join(" ".join(Page(report(run, defects=found)).text).split())
    assert told.index("Broken on purpose.") < told.index("Yes: ")
    assert "late-isr seconds=3 on b1: acted first at 2026-11-23T20:00:00Z (<t-0> kept out)" in told
    assert "late-isr seconds=3 on b2: never acted" in told
    assert "Broken on purpose" not in " ".join(Page(report(run)).text)


def test_nothing_is_loaded_from_anywhere(make_run):
    text = report(make_run())
    page = Page(text)
    assert not [a for a in page.attributes if a[1] in ("src", "srcset", "action", "background")]
    assert [a[2] for a in page.attributes if a[1] == "href"] == ["#criteria"]
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket", text)
    urls = set(re.findall(r"https?://[^\s\"')<]+", text))
    assert urls == {"https://github.com/leeoniya/uPlot"}  # the licence line of what is inlined


def test_a_name_cannot_break_out(make_run):
    evil = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> \u2028 &amp; '\""
    run = make_run()
    plain, attacked = (Page(report(run, profile=profile, parameters={profile: profile})) for profile in ("ci", evil))
    assert attacked.tags == plain.tags
    assert evil in "".join(attacked.text)
    criteria = [replace(c, why=evil, expected=evil, host=evil) for c in run.judged().criteria]
    page = Page(render(run.manifest, run.samples, run.events, criteria, run.judged().measures))
    assert page.tags.count("script") == plain.tags.count("script") == 2
    assert "img" not in page.tags


def test_embedded_json_is_the_document_again_and_has_no_markup():
    document = {"a": "</script><!--&\u2028", "b": [1.5, None, "é"]}
    text = str(embedded(document))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == document


def test_the_charts_data_is_what_was_measured(make_run):
    run = make_run()
    page = Page(report(run))
    (data,) = [json.loads(text) for attributes, text in page.scripts if attributes.get("type") == "application/json"]
    assert [c["id"] for c in data] == ["b1-transmit", "b2-receive", "b2-control"]
    measured = run.judged().measures.rates[0]
    means = [v for v in data[0]["window"] if v is not None]
    assert max(means) == pytest.approx(measured.highest_window_bytes_per_s, rel=2e-3)
    (level,) = data[0]["levels"]
    assert (level["quota"], level["bound"]) == (10e6, pytest.approx((120e6 + (1 << 20)) / 11))
    assert (data[0]["band"]["low"], data[0]["band"]["high"]) == (9.5e6, 10e6)
    assert [level["bound"] for level in data[2]["levels"]] == [None]
    assert [m["label"] for m in data[0]["marks"]][:2] == ["quota in force", "move starts"]
    # Each chart has its table, for those who do not see it.
    assert page.tags.count("figure") == page.tags.count("details") == 3
    assert len([a for a in page.attributes if a[1:] == ("role", "img")]) == 3


def test_what_the_brokers_said_is_shown_in_full_and_nothing_when_they_said_nothing(make_run):
    run = make_run()
    said = "<b>disk</b> failed " + "x" * 300
    log = HostLog("b2", None, (LogFinding("b2", 1_795_289_955_554_000, "ERROR", "kafka.log.LogManager", said, 2),))
    facts = replace(run.manifest.facts, logs=(HostLog("b1"), log))
    page = Page(report(run, facts=facts))
    shown = [text.strip() for text in page.text if text.strip()]
    at = shown.index("19:39:15")
    assert shown[at : at + 6] == ["19:39:15", "b2", "ERROR", "2", said, "kafka.log.LogManager"]
    assert "In the brokers' logs" not in "".join(Page(report(run)).text)


@pytest.mark.parametrize("ts_us", [2**62, -(2**62), 10**30])
def test_an_instant_that_is_in_no_calendar_has_no_time_of_day(make_run, ts_us):
    run = make_run()
    log = HostLog("b2", None, (LogFinding("b2", ts_us, "ERROR", "kafka.log.LogManager", "failed", 2),))
    facts = replace(run.manifest.facts, logs=(HostLog("b1"), log))
    assert "kafka.log.LogManager" in "".join(Page(report(run, facts=facts)).text)


def test_a_gap_breaks_the_line(make_run):
    page = Page(report(make_run(gap=("b2", 30.0, 35.0))))
    data = json.loads(next(t for a, t in page.scripts if a.get("type") == "application/json"))
    broken = [t for t, v in zip(data[0]["t"], data[0]["second"], strict=True) if v is None and t > 0]
    assert len(broken) == 1
    assert 29 < broken[0] < 36


def test_the_order_of_the_samples_does_not_matter():
    run = simulate(one_to_two(2e6))
    latest_first = run.samples.sort_by([("ts", "descending")])
    measures, criteria = run.judged().measures, run.judged().criteria
    pages = [Page(render(run.manifest, table, run.events, criteria, measures)) for table in (run.samples, latest_first)]
    assert data_of(pages[0]) == data_of(pages[1])


def test_clients_of_which_nothing_is_to_be_seen_have_no_chart():
    """Its script would look for the smallest of no latencies, and the charts after it would not be drawn."""
    run = simulate(one_to_two(2e6))
    late = samples_table([Sample(EPOCH_US + 3_600_000_000, "c", "client.consume.latency", 5.0, label="8000")])
    seen = run.samples.filter(pc.not_equal(run.samples["metric"], "client.consume.latency"))
    samples = pa.concat_tables([seen, late])
    page = Page(render(run.manifest, samples, run.events, run.judged().criteria, run.judged().measures))
    assert {c["id"] for c in data_of(page) if c["kind"] == "latency"} == {"client-produce"}


def test_one_lost_record_of_a_million_leaves_no_100_percent(make_run):
    run = make_run()
    for lost, share in ((0, "100"), (1, "99.999"), (5_000, "99.5")):
        records = Records(1_000_000, 1_000_000 - lost, lost, 0, 0)
        manifest = replace(run.manifest, facts=replace(run.manifest.facts, records=records))
        found = {each.label: each.value for each in figures(manifest, run.judged().measures, manifest.move)}
        assert found["Records intact"] == share


def test_a_run_without_a_start_has_a_report(make_run):
    run = make_run()
    events = run.events.slice(0, 2)
    from results.criteria import judge

    judgement = judge(run.manifest, run.samples, events)
    text = render(run.manifest, run.samples, events, judgement.criteria, judgement.measures)
    assert "No move was recorded, so there is nothing to draw." in text


def test_without_criteria_nothing_is_claimed(make_run):
    run = make_run()
    assert answer([], run.judged().measures, run.manifest.move) == "Cannot say: nothing was judged."
    assert question(run.manifest, run.manifest.move, run.judged().measures) == (
        "Does Kafka 4.3.1 keep to a replication quota of 10 MB/s while 100 partitions move from b1 to b2 "
        "with tuned fetch settings?"
    )


def test_tidy_keeps_units_with_their_numbers():
    assert tidy("99.1 MB in 11.01 s, -4.2 % of 2026-11-21") == (
        "99.1\u00a0MB in 11.01\u00a0s, \u22124.2\u00a0% of 2026-11-21"
    )


@pytest.mark.parametrize("name", ["uPlot.iife.min.js", "uPlot.min.css", "LICENSE.uPlot"])
def test_what_is_vendored_is_what_its_readme_says(name):
    digest = hashlib.sha256((VENDOR / name).read_bytes()).hexdigest()
    assert f"| {name} | `{digest}` |" in (VENDOR / "README.md").read_text()


def data_of(page):
    return json.loads(next(t for a, t in page.scripts if a.get("type") == "application/json"))


def test_each_phase_has_its_quota_in_the_chart_and_in_the_tables():
    page = Page(report(simulate(live_change())))
    text = " ".join("".join(page.text).split())
    assert "a replication quota of 8 MB/s, then 12 MB/s, then 4 MB/s while" in text.replace("\u00a0", " ")
    assert "Phases: one quota each" in text
    chart = data_of(page)[0]
    assert [level["quota"] for level in chart["levels"]] == [8e6, 12e6, 4e6]
    assert chart["levels"][0]["stop"] < chart["levels"][1]["start"]
    assert chart["levels"][1]["bound"] == pytest.approx((12e6 * 12 + (1 << 20)) / 11)
    assert [m["label"] for m in chart["marks"]][-4:] == ["12 MB/s", "4 MB/s", "move done", "restored"]
    # A mean over 11 s that began under another quota is not drawn against this one.
    drawn = [t for t, v in zip(chart["t"], chart["window"], strict=True) if v is not None]
    assert all(any(x["start"] + 11 <= t <= x["stop"] for x in chart["levels"]) for t in drawn)
    assert chart["band"] is None


def test_what_each_quota_had_to_carry_stands_beside_kip73s_and_the_band_where_it_binds():
    run = simulate(one_to_two(2e6))
    page = Page(report(run))
    cells = [" ".join(text.split()).replace("\u00a0", " ") for text in page.text if text.strip()]
    at = cells.index("b1 transmit", cells.index("KIP: quota − inbound"))
    assert cells[at : at + 5] == ["b1 transmit", "448 MB", "4 MB/s", "6 MB/s", "8 MB/s"]
    assert cells[at + 8] == "binds"
    assert cells[cells.index("All listed traffic") + 1].endswith("%")
    charts = {c["id"]: c for c in data_of(page)}
    assert [key for key, chart in charts.items() if chart.get("band")] == ["b1-transmit"]


def test_what_clients_saw_is_on_the_same_axis_as_the_rates():
    run = simulate(one_to_two(2e6, silent=(20.0, 24.0)))
    page = Page(report(run))
    charts = {c["id"]: c for c in data_of(page)}
    rate, latency = charts["b1-transmit"], charts["client-produce"]
    assert (latency["start"], latency["stop"], latency["marks"]) == (rate["start"], rate["stop"], rate["marks"])
    assert set(latency["p50"]) == {4.0, 12.0}
    assert set(latency["p99"]) == {8.0, 24.0}
    cells = [" ".join(text.split()).replace("\u00a0", " ") for text in page.text if text.strip()]
    at = cells.index("Produce, during")
    assert cells[at + 2 : at + 6] == ["12 ms", "24 ms", "96 ms", "4.0 s"]
    assert "producer-1" in cells
    assert page.tags.count("figure") == page.tags.count("details") == len(charts)
    assert not any(c.startswith("client") for c in {c["id"] for c in data_of(Page(report(simulate(one_to_two()))))})


def test_a_restart_is_marked_with_its_host_and_what_is_not_known_is_not_drawn():
    run = simulate(bounce())
    page = Page(report(run))
    chart = {c["id"]: c for c in data_of(page)}["b1-transmit"]
    assert {"b3 leaves", "b3 back", "b1 leaves", "b1 back"} <= {m["label"] for m in chart["marks"]}
    assert [level["bound"] is None for level in chart["levels"]] == [False, False, True, True]
    assert "who leads is not known" in "".join(page.text)


def test_every_chart_has_the_unit_in_which_its_table_gives_the_same_value():
    page = Page(report(simulate(one_to_two(2e6, silent=(20.0, 24.0)))))
    cells = [" ".join(text.split()).replace("\u00a0", " ") for text in page.text if text.strip()]
    script = next(text for attributes, text in page.scripts if "type" not in attributes and "const fmt" in text)
    # The script draws bytes a second on an axis of MB/s, and milliseconds as they are.
    assert re.search(r"const MB = 1e6;", script)
    assert re.search(r'x / MB \+ .*" MB/s"', script)
    assert re.search(r'x >= 1000 \? x / 1000 \+ " s" : x \+ " ms"', script)
    charts = {c["id"]: c for c in data_of(page)}
    rates = next(chart for chart in charts.values() if chart["kind"] == "throttled")
    assert f"a replication quota of {rates['levels'][0]['quota'] / 1e6:g} MB/s while" in " ".join(cells)
    at = cells.index("1 s, MB/s")
    drawn = next(value for value in rates["second"] if value is not None)
    assert f"{drawn / 1e6:.2f}" in cells[at : at + 8]
    during = cells[cells.index("Produce, during") :]
    latency = charts["client-produce"]
    assert f"{max(v for v in latency['p99'] if v is not None):g} ms" in during[:6]
    assert "99 %, ms" in cells


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0, "logs", "0 logs"),
        (1.0, "partitions", "1 partition"),
        (2.0, "shrinks", "2 shrinks"),
        (2.0, "metrics that are always 0", "2 metrics that are always 0"),
        (1.0, "of quota", "1.000 of quota"),
    ],
)
def test_a_count_has_no_decimals(make_run, value, unit, shown):
    """The reports of healthy runs said *0.000 logs*."""
    finding = replace(make_run().judged().criteria[0], observed=value, unit=unit)
    assert observed(finding) == shown


def test_a_latency_just_below_a_second_has_no_power_of_ten():
    assert [latency(us) for us in (999_400, 999_600, 1_000_000)] == ["999 ms", "1.00 s", "1.00 s"]


def test_the_script_takes_the_most_of_long_series():
    """An argument for each reading is more than a call takes, from some hours on: the chart was not drawn."""
    own = (VENDOR.parent / "templates" / "report.js").read_text()
    assert not re.search(r"Math\.(max|min)\(.*\.\.\.(c\.|seen)(?!levels)", own)


def test_the_key_names_every_curve_and_not_by_its_colour_alone(make_run):
    run = make_run()
    text = report(run)
    assert "1 s, control" in text
    without = replace(run.judged().measures, controls=())
    assert "1 s, control" not in render(run.manifest, run.samples, run.events, run.judged().criteria, without)
    style = (VENDOR.parent / "templates" / "report.css").read_text()
    assert re.search(r"\.swatch\.p99 \{[^}]*dashed", style)
    assert 'line("p99", [6, 3])' in text
