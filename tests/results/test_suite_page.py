"""A suite's page: a row for each case, whatever became of it; nothing is loaded, nothing breaks out."""

from dataclasses import replace

import pytest

from results.contract.move import Expected
from results.criteria import judge
from results.criteria.measures import ClientView
from results.report.suite import (
    RATES,
    SIZES,
    SuiteCase,
    SuitePage,
    answer,
    produce_p99,
    render_suite,
    share_of_quota,
    time_to_move,
)
from testbed.errors import TestbedError
from testbed.experiments.experiment import experiments
from tests.results.synthetic import synthetic_run
from tests.results.test_results_report import Page


@pytest.fixture(scope="module")
def passed():
    run = synthetic_run()
    return run.manifest, judge(run.manifest, run.samples, run.events)


def case(name, ending, run=None, judgement=None, **changes):
    fields = {"why": "" if ending == "pass" else "because <b>", "seconds": 91.0, "report": None, "evidence": None}
    fields |= changes
    return SuiteCase(name, "kip73-two-node", "two-brokers", ending, run=run, judgement=judgement, **fields)


def page(*cases, ending="fail", problems=(), confirmed=True):
    return SuitePage("kip73", "Does it?", "ci", "2026-11-21T18:15:00+00:00", 600.0, ending, cases, problems, confirmed)


def test_every_case_has_its_row_with_figures_and_links(passed):
    run, judgement = passed
    cases = (
        case("a", "pass", run, judgement, report=f"runs/{run.run_id}.html"),
        case("b", "not done", evidence="ducktape/x/1"),
        case("c", "inconclusive", run, judgement),
    )
    text = render_suite(page(*cases, problems=("run x differs <script>",)))
    read = Page(text)
    links = [value for tag, name, value in read.attributes if (tag, name) == ("a", "href")]
    assert links == ["#cases", f"runs/{run.run_id}.html", "ducktape/x/1/"]
    told = " ".join("".join(read.text).split())
    assert "1 of 3 cases passed; not done: b; inconclusive: c." in told
    assert "Not confirmed: run x differs <script>" in told
    assert told.count("because <b>") == 2
    assert read.scripts == []


def test_settings_have_the_unit_of_what_they_set(passed):
    """A response of 20 MiB once stood as 20.97 MB/s: every large number was a rate."""
    run, judgement = passed
    parameters = {
        "rate": 10e6,
        "low": 50e3,
        "response": 20 << 20,
        "size": 1024,
        "keys": 2_000_000,
        "skew": 0.5,
        "x": "y",
    }
    text = "".join(Page(render_suite(page(case("a", "pass", replace(run, parameters=parameters), judgement)))).text)
    assert "rate 10 MB/s, low 50 kB/s, response 20.97 MB, size 1.024 kB, keys 2000000, skew 0.5, x y" in text.replace(
        "\u00a0", " "
    )


def test_every_setting_in_bytes_is_known_to_the_page():
    parameters = [each for experiment in experiments().values() for each in experiment.parameters]
    rates = {each.name for each in parameters if reads(each, "256kB/s")}
    sizes = {each.name for each in parameters if reads(each, "256kB")}
    assert (bool(rates), rates - {*RATES}) == (True, set())
    assert (bool(sizes), sizes - {*SIZES}) == (True, set())


def reads(parameter, text):
    try:
        return not isinstance(parameter.parse(text), str)
    except (ValueError, TestbedError):
        return False


def test_the_share_of_the_quota_is_of_the_broker_and_direction_that_the_model_says_to_bind(passed):
    run, judgement = passed
    told = share_of_quota(run.move, judgement.measures)
    assert 0.9 < float(told.value) < 1.01
    expected = (Expected("b1", "transmit", 500_000_000, 0.0), Expected("b2", "receive", 500_000_000, 3e6))
    assert share_of_quota(replace(run.move, expected=expected), judgement.measures).note.startswith("b2 receive, of 10")


def test_times_are_told_beside_model_and_formula(passed):
    run, judgement = passed
    took = judgement.measures.moved_s
    move = replace(run.move, model_seconds=took / 1.05, kip73_seconds=took * 2)
    note = time_to_move(move, judgement.measures).note
    assert note == f"model {took / 1.05:.1f} s, -4.8 %; KIP-73 {took * 2:.1f} s, +100.0 %"
    assert (
        "no model: no leader"
        in time_to_move(replace(move, model_seconds=None, model_why="no leader"), judgement.measures).note
    )


def test_what_producers_waited_is_told_before_and_during(passed):
    _run, judgement = passed
    views = [ClientView("produce", part, 1000, 900.0, us, 9e5, 0.1) for part, us in (("before", 4e3), ("during", 9e4))]
    told = produce_p99(replace(judgement.measures, clients=tuple(views)))
    assert (told.value, told.note) == ("90.0 ms", "before 4.0 ms")
    assert produce_p99(judgement.measures).value == "\N{EN DASH}"


def test_a_suite_that_passed_says_so(passed):
    run, judgement = passed
    whole = page(case("a", "pass", run, judgement), ending="pass")
    assert answer(whole) == "1 of 1 case passed."
    assert "<span>Pass</span></h1>" in render_suite(whole)
