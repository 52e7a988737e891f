"""What may be said of a scenario from few runs, and how a release's verdict comes of it."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from results.compare.compared_measures import find_measure
from results.compare.judgement import ANY, Pair, PairedComparison, adjusted
from results.compare.qualification import Qualification, ScenarioQualification
from results.compare.qualification_text import as_json, as_junit, lines, markdown
from results.compare.render import comparison_row
from results.compare.scenario_judgement import (
    TO_DO,
    QualificationVerdict,
    VersionResult,
    always_failed,
    doubtful,
    judge_cells,
)
from results.report.qualification import figures, render_qualification
from results.verdicts import EXIT
from tests.compare.paired import judge


def cell(version, *runs, criterion="records-intact"):
    """A version with so many runs: `p`ass, `f`ail (of the one criterion), `i`nconclusive."""
    words = {"p": "pass", "f": "fail", "i": "inconclusive"}
    verdicts = [words[letter] for letter in runs]
    judged = [letter for letter in runs if letter != "i"]
    counts = {criterion: (judged.count("f"), len(judged))} if judged else {}
    ids = tuple(f"{version}-{number}" for number in range(len(runs)))
    return VersionResult(version, {word: verdicts.count(word) for word in verdicts}, ids, counts)


@pytest.mark.parametrize(
    ("candidate", "baseline", "verdict", "reason"),
    [
        ("p", "p", "OK", ""),
        ("p", "f", "OK", ""),
        ("p", "", "OK", ""),
        ("fff", "ppp", "REGRESSED", "records-intact failed in 3 of 3 runs; old in 0 of 3"),
        ("fff", "pip", "REGRESSED", "old in 0 of 2"),
        # One run of the baseline is not enough to say that it keeps what the candidate breaks.
        ("fff", "pii", "NOISY", "too few runs to show a difference"),
        ("fff", "fff", "NOISY", "as with every baseline"),
        ("fff", "fpp", "NOISY", "too few runs to show a difference"),
        ("fff", "iii", "NO-DATA", "no baseline was judged on it"),
        ("fff", "", "NO-DATA", "no baseline was judged on it"),
        ("f", "p", "NOISY", "3 runs would decide"),
        ("ff", "pp", "NOISY", "3 runs would decide"),
        ("ffp", "ppp", "NOISY", "chance explains that, too"),
        ("ffp", "", "NO-DATA", "failed in 2 of 3 runs, and no baseline was judged on it"),
        ("ffp", "iii", "NO-DATA", "no baseline was judged on it"),
        # No machine loses a record: once is enough to leave it open.
        ("fpp", "", "NO-DATA", "failed in 1 of 3 runs, and no baseline was judged on it"),
        ("fpp", "ppp", "NOISY", "records-intact failed in 1 of 3 runs; old in 0 of 3: chance explains that, too, but"),
        ("fpp", "ppf", "OK", ""),
        ("ipp", "p", "OK", ""),
        ("iii", "p", "NO-DATA", "inconclusive in 3 runs: new-0, new-1, new-2"),
        ("", "p", "NO-DATA", "it was not run"),
    ],
)
def test_what_few_runs_say(candidate, baseline, verdict, reason):
    said = judge_cells(cell("new", *candidate), [cell("old", *baseline)])
    assert said.verdict == verdict
    assert reason in "; ".join(said.reasons)
    assert bool(said.reasons) == (verdict != "OK")


@pytest.mark.parametrize("baseline", ["ppp", "", "fpp"])
def test_another_criterion_that_fails_in_one_of_three_runs_is_no_reason(baseline):
    said = judge_cells(cell("new", *"fpp", criterion="x"), [cell("old", *baseline, criterion="x")])
    assert (said.verdict, said.reasons) == ("OK", ())


def ends(version, *runs):
    """A version with so many runs: `p`ass, `s`tuck without an end and in no store, `e`nded early in the store."""
    stored = [letter for letter in runs if letter != "s"]
    found = cell(version, *(letter.replace("e", "i") for letter in stored))
    stuck = tuple("run-9 was not done after 420 s" for _ in range(runs.count("s")))
    return replace(found, stuck=stuck, unended=(len(runs) - runs.count("p"), len(runs)))


@pytest.mark.parametrize(
    ("candidate", "baseline", "verdict", "reason"),
    [
        ("sss", "pp", "REGRESSED", "run-complete failed in 3 of 3 runs; old in 0 of 2; run-9 was not done after 420 s"),
        ("eee", "pp", "REGRESSED", "run-complete failed in 3 of 3 runs; old in 0 of 2; its report says why"),
        ("sse", "ppp", "REGRESSED", "old in 0 of 3"),
        ("s", "p", "NOISY", f"1 of 1 run; 3 runs would decide; run-9 was not done after 420 s: {TO_DO}"),
        ("ss", "pp", "NOISY", "3 runs would decide"),
        # A criterion that fails once of three times passes.
        ("spp", "ppp", "NOISY", "run-complete failed in 1 of 3 runs; old in 0 of 3; run-9 was not done after 420 s"),
        ("sss", "p", "NOISY", "too few runs to show a difference"),
        ("sss", "sss", "NOISY", "not new, and not fulfilled"),
        ("sss", "spp", "NOISY", "too few runs to show a difference"),
        ("sssspppppp", "pppppppppp", "REGRESSED", "more often than with old (Fisher's exact test, p = 0.043)"),
        ("sssppppppp", "pppppppppp", "NOISY", "chance explains that, too"),
        (
            "ssssssss",
            "pppppsss",
            "REGRESSED",
            "old in 3 of 8: more often than with old (Fisher's exact test, p = 0.013)",
        ),
        ("sssss", "sspppppp", "REGRESSED", "old in 2 of 8"),
        ("sss", "", "NO-DATA", "no baseline was judged on it"),
        ("p", "sss", "OK", ""),
    ],
)
def test_what_runs_without_an_end_say(candidate, baseline, verdict, reason):
    said = judge_cells(ends("new", *candidate), [ends("old", *baseline)])
    assert said.verdict == verdict
    assert reason in "; ".join(said.reasons)
    assert (TO_DO in "; ".join(said.reasons)) == (verdict in ("NOISY", "NO-DATA"))


def test_a_candidate_that_fails_or_does_not_end_in_every_run_has_regressed():
    new = replace(cell("new", "f"), stuck=("late", "late"), unended=(2, 3))
    said = judge_cells(new, [replace(cell("old", *"ppp"), unended=(0, 3))])
    assert said.verdict == "REGRESSED"
    assert said.reasons[0] == "one criterion or another failed in 3 of 3 runs; old in 0 of 3"


def test_the_page_json_and_junit_have_the_runs_without_an_end():
    new = ends("4.3.1", *"sss")
    hangs = row("kip73/h", judge_cells(new, [ends("4.2.1", *"pp")]), ends("4.2.1", *"pp"), new)
    found = made(FINE, hangs)
    assert (found.verdict, EXIT[found.verdict]) == ("REGRESSED", 1)
    page = render_qualification(found, None, lambda _run_id: None)
    assert "Do not release it as it is" in page and "3 without an end" in page and "run-9 was not done" in page
    assert [each.value for each in figures(found, None) if each.label == "Runs"] == ["7"]
    versions = as_json(found)["scenarios"][0]["versions"]
    assert versions[1]["unended"] == {"runs": 3, "of": 3, "not_stored": ["run-9 was not done after 420 s"] * 3}
    [failure] = ET.fromstring(as_junit(found)).iter("failure")
    assert failure.attrib["message"].startswith("REGRESSED: run-complete failed in 3 of 3 runs")
    assert "4.3.1: 3 without an end: run-9 was not done" in failure.text


def test_junit_has_the_end_of_a_brokers_log_as_detail_alone():
    why = "Kafka on b1 does not run; the end of its log:\nOutOfMemoryError"
    new = replace(ends("4.3.1", *"sss"), stuck=(why, why, why))
    found = made(row("kip73/h", judge_cells(new, [ends("4.2.1", *"pp")]), ends("4.2.1", *"pp"), new))
    [failure] = ET.fromstring(as_junit(found)).iter("failure")
    assert failure.attrib["message"].endswith("; Kafka on b1 does not run; the end of its log:")
    assert "OutOfMemoryError" in failure.text


def test_what_fails_every_time_and_otherwise_each_time_has_regressed():
    ids, runs = ("n0", "n1", "n2"), {"fail": 3}
    hosts = {f"rate-bound {host}": (1, 3) for host in ("b1", "b2", "b3")}
    kept = dict.fromkeys(hosts, (0, 3))
    new, old = VersionResult("new", runs, ids, hosts), VersionResult("old", {"pass": 3}, ids, kept)
    said = judge_cells(new, [old])
    assert said.verdict == "REGRESSED"
    assert said.reasons == ("one criterion or another failed in 3 of 3 runs; old in 0 of 3",)
    once = VersionResult("new", {"fail": 1, "pass": 2}, ids, {"a": (1, 3), "b": (1, 3)})
    assert judge_cells(once, [old]).verdict == "OK"


def test_the_worst_reason_of_a_scenario_that_runs_once_is_the_first():
    """JUnit's message and a table's cell show one reason only."""
    ids = ("n0", "n1", "n2")
    new = VersionResult("new", {"fail": 3}, ids, {"a": (2, 3), "b": (3, 3)})
    said = judge_cells(new, [VersionResult("old", {"pass": 3}, ids, {"a": (0, 3), "b": (0, 3)})])
    assert [each.partition(" ")[0] for each in said.reasons] == ["b", "a"]


def test_why_it_was_not_run_is_the_reason():
    assert judge_cells(VersionResult("new", {}, (), {}, "it could not be run: no disk"), []).reasons == (
        "it could not be run: no disk",
    )


def test_a_run_that_fails_for_no_criterion_is_no_pass():
    odd = VersionResult("new", {"fail": 1}, ("r",), {})
    assert judge_cells(odd, [cell("old", "p")]).verdict == "NOISY"


def test_what_one_of_two_baselines_keeps_has_regressed_against_it():
    said = judge_cells(cell("new", *"fff"), [cell("old", *"ppp"), cell("older", *"fff")])
    assert said.verdict == "REGRESSED"
    assert "old in 0 of 3, older in 3 of 3" in said.reasons[0]


def test_what_the_baseline_fails_is_worth_knowing():
    assert judge_cells(cell("new", "p"), [cell("old", "f")]).notes == ("old failed records-intact in 1 of 1",)


def test_a_baseline_without_a_run_was_not_run():
    notes = judge_cells(
        cell("new", "p"), [cell("old"), replace(cell("older"), missing="no jar"), cell("oldest", "i")]
    ).notes
    assert notes == ("old: it was not run", "older: no jar", "oldest: inconclusive in 1 run")


def test_a_scenario_is_in_doubt_until_something_was_judged_and_passed():
    assert not doubtful(cell("new", "p"))
    assert all(doubtful(cell("new", *runs)) for runs in ("f", "i", "pf"))


@pytest.mark.parametrize(
    ("baseline", "told"),
    [
        ("f" * 10, "old in 10 of 10: not new, and not fulfilled"),
        ("f" * 9 + "p", "old in 9 of 10: not fulfilled"),
        ("i" * 10, "old in 0 of 0: not fulfilled"),
        ("p", "old in 0 of 1: not fulfilled"),
        ("pp", "old in 0 of 2"),
    ],
)
def test_what_always_fails_is_not_fulfilled_whatever_the_baseline_does(baseline, told):
    """It is a regression where a baseline holds it in two runs or more, as where scenarios run once."""
    ten = "f" * 10
    verdict = "NOISY" if "fulfilled" in told else "REGRESSED"
    assert always_failed(cell("new", *ten), [cell("old", *baseline)]) == {
        "records-intact": QualificationVerdict(verdict, (f"records-intact failed in all 10 runs; {told}",))
    }
    assert not always_failed(cell("new", *ten[1:], "p"), [cell("old", *baseline)])
    assert not always_failed(cell("new", *"ff"), [cell("old", *baseline)])


def test_a_candidate_that_fails_in_every_run_does_not_pass_although_no_criterion_always_fails():
    ids = ("r0", "r1", "r2")
    new = VersionResult("new", {"fail": 3}, ids, {"a": (2, 3), "b": (1, 3)})
    old = VersionResult("old", {"fail": 2, "pass": 1}, ids, {"a": (1, 3), "b": (1, 3)})
    assert always_failed(new, [old]) == {
        ANY: QualificationVerdict(
            "NOISY", ("one criterion or another failed in all 3 runs; old in 2 of 3: not fulfilled",)
        )
    }


@pytest.mark.parametrize(
    ("factors", "shown"),
    [
        ({"move-seconds": 0.9, "disk-writes": 0.8}, ("none", "in 2 comparisons")),
        ({"move-seconds": 0.9, "steady-mean": 0.9}, ("-10.0 %", "steady-mean; ")),
        ({"move-seconds": 1.06, "broker-cpu-per-gb": 1.09}, ("+6.0 %", "2 × its threshold")),
    ],
)
def test_the_largest_change_for_the_worse_is_never_one_for_the_better(factors, shown):
    findings = tuple(finding(factor, measure) for measure, factor in factors.items())
    [figure] = [each for each in figures(made(replace(SLOWER, findings=findings)), None) if "worse" in each.label]
    assert figure.value == shown[0]
    assert shown[1] in figure.note


def test_restarts_of_two_scenarios_are_runs_once():
    up = row("upgrade from 4.2.1", QualificationVerdict("OK"), cell("4.2.1", *"pi"), cell("4.3.1", "p"), kind="upgrade")
    down = replace(up, name="downgrade to 4.2.1", cells=(up.cells[0], replace(up.candidate, ids=("down-0",))))
    [runs] = [each for each in figures(made(up, down, OPEN), None) if each.label == "Runs"]
    assert (runs.value, runs.note) == ("4", "3 could be judged")


def test_a_difference_counts_among_the_changes_for_the_worse():
    pairs = tuple(Pair(0.0, 5.0 + 0.01 * n) for n in range(10))
    [gap] = judge([PairedComparison("x, 4.2.1", "x, 4.3.1", find_measure("produce-gap"), pairs)])
    row = replace(SLOWER, findings=(finding(0.9), finding(1.01, "disk-writes"), gap))
    [figure] = [each for each in figures(made(row), None) if "worse" in each.label]
    assert (figure.value, figure.note.partition(";")[0]) == ("+5.04 s", "produce-gap")


def test_medians_are_those_of_the_pairs_that_the_change_is_computed_from():
    steady = [Pair(50.0, 50.0 + 0.1 * (n % 3)) for n in range(6)]
    moved = [Pair(50.0, 90.0, "cpu +50 % between readings") for _ in range(5)]
    result = judge([PairedComparison("old", "new", find_measure("move-seconds"), (*steady, *moved))])[0]
    shown = comparison_row(result, "x")
    assert (shown.before, shown.after, shown.pairs) == ("50 s", "50.1 s", "6")


def test_adjusted_chances_reject_what_holms_procedure_rejects():
    chances = [0.04, 0.001, 0.02, 0.012]
    found = adjusted(chances)
    assert found == pytest.approx([0.04, 0.004, 0.04, 0.036])
    assert adjusted([0.03, 0.03]) == pytest.approx([0.06, 0.06])  # 0.03 > 0.05 / 2
    assert adjusted([]) == []
    assert max(adjusted([0.9, 0.8])) == 1.0


def finding(factor, measure="move-seconds"):
    pairs = tuple(Pair(50.0, 50.0 * factor * (1 + 0.002 * (n - 4.5))) for n in range(10))
    return judge([PairedComparison("kip73/x, 4.2.1", "kip73/x, 4.3.1", find_measure(measure), pairs)])[0]


def row(name, said, *cells, findings=(), kind="once"):
    return ScenarioQualification(name, "kip73-two-node", "two-brokers", kind, said, cells, findings)


def made(*rows, complete=True):
    return Qualification(
        "20261121T200000Z-qualify-0a1b2c",
        "4.3.1",
        ("4.2.1",),
        "ci",
        0.03,
        rows,
        "all runs are made" if complete else "the time budget",
        complete,
        "/data/store",
        "testbed qualify --kafka 4.3.1 --against 4.2.1",
    )


FINE = row("kip73/a", QualificationVerdict("OK"), cell("4.2.1", "p"), cell("4.3.1", "p"))
BROKEN = row(
    "kip73/b",
    QualificationVerdict("REGRESSED", ("records-intact failed in 3 of 3 runs; 4.2.1 in 0 of 3",)),
    cell("4.2.1", *"ppp"),
    cell("4.3.1", *"fff"),
)
OPEN = row("kip73/c", QualificationVerdict("NO-DATA", ("it was not run",)), cell("4.2.1"), cell("4.3.1"))
SLOWER = row(
    "kip73/x",
    QualificationVerdict("REGRESSED", ("REGRESSED, move-seconds: slower",)),
    cell("4.2.1", *"p" * 10),
    cell("4.3.1", *"p" * 10),
    findings=(finding(1.1),),
    kind="paired",
)


@pytest.mark.parametrize(
    ("found", "verdict", "code"),
    [
        (made(FINE), "OK", 0),
        (made(FINE, BROKEN), "REGRESSED", 1),
        (made(FINE, OPEN), "NO-DATA", 2),
        (made(OPEN, BROKEN), "REGRESSED", 1),
        (made(), "NO-DATA", 2),
        (made(FINE, complete=False), "NO-DATA", 2),
        (made(BROKEN, complete=False), "REGRESSED", 1),
    ],
)
def test_the_worst_wins_and_what_is_not_complete_is_no_pass(found, verdict, code):
    assert (found.verdict, EXIT[found.verdict]) == (verdict, code)
    assert bool(found.reasons) == (verdict != "OK" and bool(found.rows))


def flaky(candidate, baseline, *, of=70, kind="once", baselines=("4.2.1",)):
    """Scenarios of which so many fail once with one side alone. Of a candidate that fails, all have three runs."""
    found = []
    for number in range(of):
        new = cell("4.3.1", *("fpp" if number < candidate else "p"), criterion="isr-expansion")
        runs = "ppp" if number < candidate else "f" if number < candidate + baseline else "p"
        olds = [cell(version, *runs, criterion="isr-expansion") for version in baselines]
        found.append(row(f"kip73/{number}", judge_cells(new, olds), *olds, new, kind=kind))
    return made(*found)


@pytest.mark.parametrize(
    ("candidate", "baseline", "verdict"),
    [
        (4, 0, "OK"),
        (5, 0, "NOISY"),
        (7, 0, "REGRESSED"),
        (6, 1, "OK"),
        (7, 1, "NOISY"),
        (12, 2, "REGRESSED"),
        (9, 9, "OK"),
    ],
)
def test_a_candidate_that_fails_now_and_then_in_many_scenarios_is_no_pass(candidate, baseline, verdict):
    found = flaky(candidate, baseline)
    assert {each.said.verdict for each in found.rows} == {"OK"}
    assert (found.verdict, bool(found.reasons)) == (verdict, verdict != "OK")
    told = "\n".join(lines(found))
    assert (f"{verdict:<11}  all-scenarios  of 70 scenarios, a run failed" in told) == (verdict != "OK")


def test_the_scenarios_that_fail_with_the_candidate_alone_are_named_on_every_output():
    found = flaky(7, 0)
    [reason] = found.reasons
    assert reason == (
        "REGRESSED all-scenarios: of 70 scenarios, a run failed with 4.3.1 alone in 7, with 4.2.1 alone in 0 "
        "(adjusted p = 0.0078): kip73/0 (isr-expansion); kip73/1 (isr-expansion); kip73/2 (isr-expansion); "
        "kip73/3 (isr-expansion); kip73/4 (isr-expansion); and 2 more"
    )
    assert as_json(found)["reasons"] == [reason] and f"- {reason}" in markdown(found)
    page = render_qualification(found, None, lambda _run_id: None)
    assert "all-scenarios" in page and "Do not release it as it is" in page and "<b>Regressed:</b>" in page
    [failure] = ET.fromstring(as_junit(found)).iter("failure")
    assert failure.attrib["message"].startswith("REGRESSED: of 70 scenarios") and "kip73/6" in failure.text


def test_only_scenarios_that_run_once_count_together_and_each_baseline_is_one_more_test():
    assert flaky(7, 0, kind="paired").together == ()
    assert [each.verdict for each in flaky(7, 0, baselines=("4.2.1", "3.9.2")).together] == ["NOISY", "NOISY"]


def test_a_comparison_in_words_has_before_after_interval_adjusted_p_and_pairs():
    told = comparison_row(finding(1.1), "kip73/x")
    assert told.verdict == "REGRESSED"
    assert (told.before, told.after) == ("50 s", "55 s")
    assert told.change == "+10.0 %"
    assert told.pairs == "10"
    assert float(told.p) <= 0.05
    low, high = told.interval.split(" to ")
    assert float(low.split()[0]) < 10 < float(high.split()[0])
    nothing = comparison_row(replace(finding(1.1), effect=None, adjusted=None), "x")
    assert nothing.change == nothing.p == "\N{EN DASH}"


def test_the_terminal_has_every_reason_worst_first():
    told = lines(made(FINE, OPEN, BROKEN))
    assert [each.split()[0] for each in told if not each.startswith(" ")] == ["REGRESSED", "NO-DATA", "OK"]
    assert any("records-intact failed in 3 of 3 runs" in each for each in told)


def test_junit_counts_what_failed_and_what_cannot_be_said():
    root = ET.fromstring(as_junit(made(FINE, OPEN, BROKEN, complete=False)))
    assert {name: root.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "2",
        "skipped": "0",
    }
    [failed] = root.findall(".//failure")
    assert failed.attrib["message"].startswith("REGRESSED: records-intact failed in 3 of 3")
    assert "4.3.1-0, 4.3.1-1, 4.3.1-2" in failed.text


def test_a_comment_has_the_matrix_and_the_measures():
    told = markdown(made(FINE, SLOWER, replace(BROKEN, name="kip73/b|<b>")))
    assert told.startswith("### REGRESSED: Kafka 4.3.1 against 4.2.1\n")
    assert "| **REGRESSED** | kip73/b\\|&lt;b&gt; | 3 pass | 3 fail |" in told
    assert "| **REGRESSED** | kip73/x | move-seconds | 50 s | 55 s | +10.0 % |" in told


def test_json_has_everything_that_is_told():
    told = json.loads(json.dumps(as_json(made(FINE, SLOWER))))
    assert (told["verdict"], told["candidate"], told["against"]) == ("REGRESSED", "4.3.1", ["4.2.1"])
    [measure] = told["scenarios"][0]["measures"]
    assert measure["interval"][0] < 1.1 < measure["interval"][1] * 1.01
    assert measure["adjusted_p"] <= 0.05 and measure["against"] == "4.2.1"
    assert told["scenarios"][1]["versions"][1] == {
        "kafka": "4.3.1",
        "runs": {"pass": 1},
        "run_ids": ["4.3.1-0"],
        "failed": {},
        "missing": None,
        "unended": {"runs": 0, "of": 0, "not_stored": []},
        "inconclusive": {},
    }


def test_the_page_is_whole_by_itself_and_says_why():
    page = render_qualification(
        made(FINE, SLOWER, BROKEN, replace(OPEN, name="<script>alert(1)</script>"), complete=False),
        None,
        lambda run_id: f"runs/{run_id}.html" if run_id == "4.3.1-0" else None,
    )
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page and "src=" not in page
    assert "Regressed" in page and "records-intact failed in 3 of" in page
    assert 'href="runs/4.3.1-0.html"' in page and 'href="runs/4.3.1-1.html"' not in page
    assert "testbed qualify --resume 20261121T200000Z-qualify-0a1b2c" in page
    assert page.count('<svg class="interval"') == 1
    assert "<b>Regressed:</b> read the reports" in page and "<b>No data:</b> --resume makes" in page
    assert "<b>Noisy:</b>" not in page
    assert "+10.0" in page
