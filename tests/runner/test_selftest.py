"""The self-test's plan, and its table from runs that were and were not found."""

from dataclasses import replace
from functools import partial

import pytest

from results.compare.effect import binomial_interval
from results.contract.defect import DefectRecord
from testbed.cli.commands.selftest import as_json, as_markdown, as_text, row
from testbed.errors import KafkaStuck, TestbedError, UsageError
from testbed.runner import journal
from testbed.runner.campaign import require_enough_pairs
from testbed.runner.detection import criterion_of, detections, with_causes
from testbed.runner.execution import CampaignLimits, execute
from testbed.runner.journal import campaign_state
from testbed.runner.replayed_nights import NightChange, line_changes
from testbed.runner.selftest import SelftestRequest, SelftestResult, needless, new_selftest, plan, texts, way_of
from tests.runner.fakes import FakeExecutor, quiet

LEAK = "leader-throttle-leak:share=0.25"


class Brokers(FakeExecutor):
    """Broken brokers fail the criteria that `fails` gives for a label; each moves for `seconds_of` its label."""

    def __init__(self, fails=lambda label, number: (), **other):
        super().__init__(**other)
        self.fails = fails

    def run(self, variant, begun):
        found = super().run(variant, begun)
        failed = tuple(self.fails(variant.label, len(self.made) - 1))
        if found.verdict != "inconclusive":
            kept = tuple(name for name in ("records-intact", "scenario-steps") if name not in failed)
            found = replace(found, verdict="fail" if failed else "pass", failed=failed, kept=kept)
        self.store[begun.run_id] = found
        return found


def played(asked, brokers, acted=lambda _run_id: True, reported=None):
    campaign = new_selftest(asked)
    with journal.created(campaign) as open_journal:
        limits = CampaignLimits(clock=brokers.clock, needless=partial(needless, campaign))
        ended = execute(open_journal, brokers, limits, quiet)
        state = campaign_state(open_journal.entries)

    def defects_of(run_id):
        return (DefectRecord("b1", "leader-throttle-leak", acted="2026-11-23T20:00:00Z" if acted(run_id) else None),)

    found = detections(campaign, state, defects_of, *([reported] if reported else []))
    return SelftestResult(campaign, tuple(found), ended.why, ended.complete)


def test_a_name_alone_means_each_of_its_sizes():
    assert texts(["late-isr", "leader-throttle-leak@b1"]) == ("late-isr", "leader-throttle-leak@b1")
    assert texts(["leader-throttle-leak"])[0] == "leader-throttle-leak:share=0.02"
    assert {each.partition(":")[0] for each in texts([])} >= {"late-isr", "leader-throttle-leak"}
    with pytest.raises(UsageError, match="did you mean late-isr"):
        texts(["late-irs"])


def test_the_plan_of_each_way():
    variants, groups = plan(SelftestRequest((LEAK, "late-isr"), repeats=3, healthy=2))
    assert [each.defects for each in variants][:2] == [(LEAK,), ("late-isr",)]
    assert [(len(each.labels), each.repeats) for each in groups[:2]] == [(1, 3), (1, 3)]
    assert all(each.repeats == 2 and each.name.startswith("healthy ") for each in groups[2:])
    variants, groups = plan(SelftestRequest((LEAK,), "compare"))
    assert [(each.repeats, len(each.pairs)) for each in groups] == [(8, 1), (8, 1)]
    assert [each.defects for each in variants] == [(), (LEAK,), ()]
    # Defects of one experiment share its healthy runs; each broken variant is compared with them.
    _variants, groups = plan(SelftestRequest((LEAK, "late-isr", "fetch-delay"), "compare", healthy=0))
    assert [[each.partition(" ")[0] for each in group.labels] for group in groups] == [
        ["healthy", "leader-throttle-leak", "late-isr"],
        ["healthy", "fetch-delay", "fetch-delay", "fetch-delay"],
    ]
    assert all(group.pairs == tuple((group.labels[0], each) for each in group.labels[1:]) for group in groups)
    variants, groups = plan(SelftestRequest((LEAK,), "brief", healthy=0))
    assert [len(each.labels) for each in groups] == [9]
    assert {each.defects for each in variants} == {(LEAK,)}
    for way in ("run", "compare", "brief", "qualify"):
        assert way_of(new_selftest(SelftestRequest((LEAK,), way))) == way
    with pytest.raises(UsageError, match="1 or more"):
        plan(SelftestRequest((LEAK,), repeats=-1))


def test_several_defects_at_once_are_one_play():
    both = "follower-throttle-leak:share=0.1+leader-throttle-leak@b1:share=0.1"
    variants, groups = plan(SelftestRequest((both,), healthy=0))
    assert variants[0].defects == ("follower-throttle-leak:share=0.1", "leader-throttle-leak@b1:share=0.1")
    assert groups[0].name == "follower-throttle-leak share=0.1 + leader-throttle-leak on b1 share=0.1"
    assert len(new_selftest(SelftestRequest((both,), "brief")).slots) == 18
    with pytest.raises(UsageError, match="no defect 'x'"):
        plan(SelftestRequest((f"{both}+x",)))


def test_eight_pairs_can_tell():
    campaign = new_selftest(SelftestRequest((LEAK,), "compare"))
    require_enough_pairs(replace(campaign, groups=campaign.groups[:1]))


def test_what_one_run_finds():
    def fails(label, number):
        return ("steady-mean b1 transmit", "logs-clean b1") if "leak" in label else ()

    result = played(SelftestRequest((LEAK,), repeats=2), Brokers(fails))
    leak, healthy = result.detections
    assert (leak.result, leak.found, leak.after, leak.as_expected) == ("found", 2, 1, True)
    assert leak.by == {"logs-clean b1": 2, "steady-mean b1 transmit": 2}
    assert (healthy.healthy, healthy.result, healthy.found) == (True, "missed", 0)
    assert (result.exit_code, result.alarms) == (0, 0)
    assert row(leak)[:5] == ("found", "leader-throttle-leak share=0.25", row(leak)[2], "2 of 2", "1")
    assert row(healthy)[0] == "no alarm"
    assert "1 found; 0 alarms in 2 plays of healthy brokers" in as_text(result)
    assert "| **found** | `leader-throttle-leak share=0.25` |" in as_markdown(result, "run")
    assert '"as_expected": true' in as_json(result)


def test_what_is_found_sometimes_and_by_another():
    result = played(
        SelftestRequest((LEAK,), repeats=3, healthy=0), Brokers(lambda _label, n: ("logs-clean",) * (n == 1))
    )
    (leak,) = result.detections
    assert (leak.result, leak.found, leak.after, leak.as_expected) == ("sometimes", 1, 2, False)
    assert result.exit_code == 1


def test_what_is_found_once_and_else_left_open_by_the_machine_is_not_missed():
    verdicts = iter(("pass", "inconclusive", "inconclusive"))
    brokers = Brokers(lambda _label, n: ("logs-clean",) * (n == 0), verdict=lambda _label: next(verdicts))
    result = played(SelftestRequest((LEAK,), repeats=3, healthy=0), brokers)
    (leak,) = result.detections
    assert [each.result for each in leak.trials] == ["found", "inconclusive", "inconclusive"]
    assert (leak.result, leak.missed, result.exit_code) == ("sometimes", False, 2)


def test_an_alarm_without_a_defect_is_a_failure():
    result = played(SelftestRequest((LEAK,)), Brokers(lambda _label, _n: ("steady-mean",)))
    assert (result.exit_code, result.alarms) == (1, 1)
    assert [row(each)[0] for each in result.detections] == ["found", "false alarm"]


@pytest.mark.parametrize(
    ("brokers", "acted", "word", "code"),
    [
        (Brokers(), True, "missed", 1),
        (Brokers(), False, "did not act", 2),
        (Brokers(verdict="inconclusive"), True, "inconclusive", 2),
        (Brokers(fail=lambda _label, _n: TestbedError("no broker")), True, "not run", 2),
    ],
)
def test_what_is_not_found_says_why(brokers, acted, word, code):
    result = played(SelftestRequest((LEAK,), healthy=0), brokers, lambda _run_id: acted)
    assert (result.detections[0].result, result.exit_code) == (word, code)
    if word == "not run":
        assert "no broker" in as_text(result)


def test_an_inconclusive_play_names_its_causes():
    result = played(SelftestRequest((LEAK,), healthy=0), Brokers(verdict="inconclusive"))
    (leak,) = (with_causes(each, lambda _run_id: ["machine-load: 99 % busy"]) for each in result.detections)
    assert leak.trials[0].why.endswith("; machine-load: 99 % busy")
    (found,) = played(SelftestRequest((LEAK,), healthy=0), Brokers(lambda _l, _n: ("steady-mean",))).detections
    assert with_causes(found, lambda _run_id: ["x"]) == found


def test_a_comparison_finds_what_is_slower_and_judges_each_defect_alone():
    noise = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10.0]

    def value(label, number):
        slow = 1.2 if label == "late-isr" else 1.0
        return noise[number % len(noise)] * slow

    result = played(SelftestRequest((LEAK, "late-isr"), "compare"), Brokers(value=value))
    words = {each.name: each.result for each in result.detections}
    assert words == {
        "leader-throttle-leak share=0.25": "missed",
        "late-isr": "found",
        **{name: "missed" for name in words if name.startswith("healthy")},
    }
    late = next(each for each in result.detections if each.name == "late-isr")
    assert late.by == {"move-seconds": 1}
    assert "move-seconds" in late.trials[0].why


def test_a_comparison_that_leaves_a_criterion_open_has_not_missed_it():
    """`compare` says NOISY of a criterion that fails in 3 of 8 pairs, and the exit code is that of not known."""
    made = []

    def fails(label, _number):
        made.append(label)
        return ("scenario-steps",) if label == "late-isr" and made.count(label) <= 3 else ()

    result = played(SelftestRequest(("late-isr",), "compare"), Brokers(fails))
    late, healthy = result.detections
    assert (late.result, healthy.result, result.exit_code) == ("inconclusive", "missed", 2)
    assert "scenario-steps NOISY" in late.trials[0].why


def test_a_comparison_finds_a_log_line():
    brokers = Brokers()
    logging = brokers.run

    def run(variant, begun):
        kinds = ("WARN ReplicaManager: A line.",) if "warn-line" in variant.label else ()
        brokers.store[begun.run_id] = replace(logging(variant, begun), logged=kinds)
        return brokers.store[begun.run_id]

    brokers.run = run
    result = played(SelftestRequest(("warn-line",), "compare"), brokers)
    line, healthy = result.detections
    assert (line.result, line.by, line.as_expected) == ("found", {"log-lines": 1}, True)
    assert (healthy.found, result.exit_code) == (0, 0)


def test_nights_find_a_log_line():
    rows = [
        {
            "run_id": f"r{n}",
            "series": "s",
            "experiment": "x",
            "value": 0.0,
            "logged": '["WARN A: b"]' * (n > 10) or "[]",
        }
        for n in range(1, 14)
    ]
    rows.insert(3, {**rows[0], "run_id": "r99", "logged": None})
    nights = {f"r{n}": n for n in range(100)}
    assert list(line_changes(rows, nights)) == [NightChange(13, "x", "log-lines", None)]
    assert list(line_changes(rows[:-1], nights)) == []


def test_a_suite_finds_it_by_any_case():
    result = played(
        SelftestRequest((LEAK,), "brief", healthy=0), Brokers(lambda label, _n: ("steady-mean b1",) * ("add" in label))
    )
    (leak,) = result.detections
    assert (leak.result, leak.by, leak.as_expected) == ("found", {"add: steady-mean b1": 1}, True)
    assert leak.experiment == "suite brief"


def test_nights_come_after_a_history(monkeypatch):
    asked = SelftestRequest((LEAK, "late-isr"), "nightly", cases=("move", "add"))
    assert way_of(new_selftest(asked)) == "nightly"
    given = []
    brokers = Brokers()

    def reported(nights):
        given.append([len(runs) for runs in nights])
        labels = dict(zip(brokers.store, brokers.made, strict=True))
        late = any("late-isr" in labels[run_id] for run_id in nights[-1])
        early = [NightChange(4, "kip73-two-node", "move-seconds", 0.1)]  # in the history: no alarm of these nights
        return [*early, *[NightChange(12, "kip73-two-node", "move-seconds", 0.2)] * late]

    result = played(asked, brokers, reported=reported)
    assert given == [[2] * 13] * 3
    words = {each.name: (each.result, each.after) for each in result.detections}
    assert words == {
        "leader-throttle-leak share=0.25": ("missed", None),
        "late-isr": ("found", 2),
        "healthy": ("missed", None),
    }
    late = result.detections[1]
    assert (late.by, late.as_expected) == ({"kip73-two-node: move-seconds": 1}, True)
    assert late.trials[0].why == "night 2: move-seconds +20.0% in kip73-two-node"


def test_a_qualification_asks_again_when_in_doubt():
    def fails(label, number):
        return ("scenario-steps",) if label == "late-isr" else ()

    brokers = Brokers(fails)
    result = played(SelftestRequest((LEAK, "late-isr"), "qualify"), brokers)
    assert way_of(result.campaign) == "qualify"
    words = {each.name: each.result for each in result.detections}
    assert words.pop("late-isr") == "found"
    assert set(words.values()) == {"missed"}
    late = next(each for each in result.detections if each.name == "late-isr")
    assert (len(late.trials[0].run_ids), late.by) == (6, {"scenario-steps": 1})
    assert "scenario-steps failed in 3 of 3 runs" in late.trials[0].why
    # A leak that the first run does not find, and healthy brokers that pass, are not run again.
    assert brokers.made.count("leader-throttle-leak share=0.25") == 1


@pytest.mark.parametrize(("hangs", "word", "runs"), [(3, "found", 3), (1, "inconclusive", 3)])
def test_a_qualification_finds_a_defect_that_hangs_in_every_run(hangs, word, runs):
    made = []

    def fail(label, _number):
        made.append(label)
        return KafkaStuck("not done after 600 s") if label == "late-isr" and made.count(label) <= hangs else None

    result = played(SelftestRequest(("late-isr",), "qualify"), Brokers(fail=fail))
    late, healthy = result.detections
    assert (late.result, made.count("late-isr")) == (word, runs)
    assert (late.by, healthy.result) == ({"run-complete": 1} if word == "found" else {}, "missed")
    assert f"run-complete failed in {hangs} of 3 runs" in late.trials[0].why
    assert result.exit_code == (0 if word == "found" else 2)


def test_a_qualification_finds_no_defect_that_could_not_be_played():
    brokers = Brokers(fail=lambda label, _number: TestbedError("no jar") if label == "late-isr" else None)
    late, _healthy = played(SelftestRequest(("late-isr",), "qualify"), brokers).detections
    assert (late.result, late.trials[0].why) == ("not run", "it could not be run: no jar")


def test_a_case_is_of_the_suite():
    with pytest.raises(UsageError, match="--scenario needs --by brief or nightly; with --by run"):
        plan(SelftestRequest((LEAK,), cases=("move",)))
    with pytest.raises(UsageError, match="--history needs --by nightly"):
        plan(SelftestRequest((LEAK,), history=20))
    assert plan(SelftestRequest((LEAK,), "nightly", history=20))[1][0].repeats == 20
    with pytest.raises(UsageError, match="no scenario 'mov'"):
        plan(SelftestRequest((LEAK,), "brief", cases=("mov",)))
    assert way_of(new_selftest(SelftestRequest((LEAK,), "brief", cases=("move",)))) == "brief"


def test_an_exact_interval():
    low, high = binomial_interval(5, 5)
    assert (round(low, 3), high) == (0.478, 1.0)  # (0.05 / 2) ** (1 / 5)
    assert binomial_interval(0, 5) == (0.0, pytest.approx(1 - 0.025**0.2))


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("steady-mean", "steady-mean"),
        ("steady-mean b1 transmit", "steady-mean"),
        ("under-load: steady-mean b1 transmit", "steady-mean"),
        ("3-cancelled.back", "scenario-steps"),
        ("2-let-go.done", "scenario-steps"),
    ],
)
def test_the_criterion_in_a_name(name, criterion):
    assert criterion_of(name) == criterion
