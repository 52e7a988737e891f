"""`testbed qualify`, whole, with an executor that makes nothing; and what it plans."""

import contextlib
import itertools
import json
import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from results.compare.scenario_judgement import CERTAIN
from results.criteria.findings import finding
from testbed.cli.main import main
from testbed.errors import KafkaStuck, SoftwareError, TestbedError, UsageError
from testbed.runner import campaign_run as run_module
from testbed.runner import qualification as qualified
from testbed.runner import qualification_plan as planned
from testbed.runner.campaign import Campaign, VariantGroup, new_campaign
from testbed.runner.journal import CampaignJournal, RunDone, known, opened
from testbed.runner.qualification_plan import command, kind_of, permanent, plan, scenario_of, version_of
from testbed.runner.qualification_scope import SPARES, SUITES, QualificationScope
from testbed.runner.testbed_pool import MOST_KEPT
from testbed.runner.variant import UPGRADE, Variant, resolve
from testbed.software.automq import VARIABLE
from testbed.software.source import Kind
from testbed.suites.suite import find_suite
from tests.runner.fakes import FakeExecutor, Killed

NEW, OLD = "4.3.1", "4.2.1"
QUALIFY = ["qualify", "--kafka", NEW, "--against", OLD, "--measure", "move-seconds"]
SMALL = [*QUALIFY, "--scenario", "kip73/one-to-two", "--scenario", "kip455/example", "--no-pairs", "--no-upgrade"]
PAIRED = [*QUALIFY, "--scenario", "kip73/two-node", "--paired", "kip73/two-node", "--no-upgrade", "--pairs", "8"]


BUILT = "4.4.0-SNAPSHOT+0123456789"


@pytest.fixture(autouse=True)
def no_ground(monkeypatch):
    """Runs of the fake executor are in no store, and no Kafka is fetched.

    A folder with a file `libs` is the build that this file names; releases are what they are called.
    """

    def release(source):
        is_version = source.kind in (Kind.RELEASE, Kind.BUILD)
        return SimpleNamespace(version=source.text if is_version else (source.path / "libs").read_text())

    monkeypatch.setattr(qualified, "qualification_environment", lambda _found: None)
    monkeypatch.setattr(qualified, "causes_in", lambda _store, _run_id: [busy("b1"), busy("b2")])
    monkeypatch.setattr(planned, "kafka_release", release)
    monkeypatch.setattr(planned, "levels_of", lambda _release: {"metadata.version": 30})


def busy(host):
    """Return a finding that makes a run inconclusive."""
    return finding("machine-load", "idle", "inconclusive", "99 % busy", observed=None, series=("cpu.busy",), host=host)


def built(folder, version=f"{BUILT}ab"):
    """Return the path of a folder with a build of this version."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "libs").write_text(version)
    return str(folder)


def of_new(label):
    return version_of(label) == NEW


def test_every_case_of_the_suites_is_there_with_each_version_and_upgrades_and_pairs_come_last(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    variants, groups = plan(NEW, [OLD, "3.9.2"], QualificationScope())
    every = {f"{suite}/{case.name}" for suite in SUITES for case in find_suite(suite).cases("ci")}
    assert {group.name for group in groups if kind_of(group) != "upgrade"} == every
    kinds = [kind_of(group) for group in groups]
    assert kinds == sorted(kinds, key=["once", "upgrade", "paired"].index)
    assert [group.name for group in groups if kind_of(group) == "upgrade"] == [
        "upgrade from 4.2.1 and downgrade to 4.2.1",
        "upgrade from 3.9.2 and downgrade to 3.9.2",
    ]
    assert [group.name for group in groups if group.pairs] == [
        "kip73/two-node",
        "kip73/one-to-two-produce",
        "kip73/two-to-one-produce",
        "s3/unthrottled",
    ]
    for group in groups:
        assert version_of(group.labels[-1]) == NEW
        assert group.repeats == (10 if group.pairs else CERTAIN)
    assert len({each.label for each in variants}) == len(variants)
    upgrade = next(each for each in variants if each.label == "upgrade from 3.9.2, 4.3.1")
    assert (upgrade.experiment, upgrade.kafka, upgrade.settings) == (UPGRADE, "3.9.2", ("to=4.3.1",))
    assert [each.label for each in variants if each.settings == ("to=same",)] == [
        "restarts of 4.2.1, 4.2.1",
        "restarts of 3.9.2, 3.9.2",
    ]
    downgrade = next(each for each in variants if each.label == "downgrade to 3.9.2, 4.3.1")
    assert (downgrade.kafka, downgrade.settings) == ("3.9.2", ("to=4.3.1", "direction=down"))


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
def test_a_qualification_can_be_run_in_every_profile_and_is_the_same_from_its_journal(profile, tmp_path):
    variants, groups = plan(NEW, [OLD], QualificationScope(profile=profile))
    asked = new_campaign("qualify", variants, 1, 1, store=str(tmp_path / "store"), groups=groups)
    assert Campaign.from_document(json.loads(json.dumps(asked.document()))) == asked
    slots = asked.slots
    assert sorted(slot.index for slot in slots) == list(range(len(slots)))
    for slot in slots:
        group, first = asked.group_of(slot)
        assert slot.variant in group.labels and first <= slot.block < first + group.blocks


def test_measures_that_a_user_names_may_need_a_throttle():
    """Without one, pairs had no `steady-mean`, and a healthy candidate was NO-DATA."""
    scope = QualificationScope(profile="ci", upgrades=False, measures=("steady-mean",))
    _variants, groups = plan(NEW, [OLD], scope)
    paired = [group.name for group in groups if group.pairs]
    assert len(paired) == 3
    assert "s3/unthrottled" not in paired


@pytest.mark.parametrize(
    ("profile", "paired"), [("smoke", []), ("ci", ["s3/unthrottled"]), ("release", ["s3/unthrottled"])]
)
def test_one_move_without_a_throttle_is_run_in_pairs(profile, paired):
    """A throttle makes up for a slower fetch: the three moves of KIP-73 take as long as before."""
    _variants, groups = plan(NEW, [OLD], QualificationScope(profile=profile, suites=("s3",), upgrades=False))
    assert [group.name for group in groups if group.pairs and group.name == "s3/unthrottled"] == paired
    only = QualificationScope(profile=profile, only=(groups[0].name,), upgrades=False)
    assert [bool(group.pairs) for group in plan(NEW, [OLD], only)[1]] == [groups[0].name in paired]


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
def test_restarts_have_the_time_limit_of_the_scenarios_of_kip73_and_upgrades_twice_that(profile):
    variants, _groups = plan(NEW, [OLD], QualificationScope(profile=profile, suites=("kip73",)))
    limits = {each.label.partition(" ")[0]: each.limit_s for each in variants if each.experiment == UPGRADE}
    usual = max(each.limit_s for each in variants if each.experiment != UPGRADE)
    assert usual == (1200 if profile == "release" else 420)
    assert limits == {"restarts": usual, "upgrade": 2 * usual, "downgrade": 2 * usual}


def test_an_upgrade_in_an_earlier_journal_has_restarts_of_its_own(tmp_path):
    name = f"upgrade from {OLD}"
    targets = {OLD: "to=same", NEW: f"to={NEW}"}
    members = [Variant(f"{name}, {each}", UPGRADE, "ci", (to,), OLD) for each, to in targets.items()]
    groups = [VariantGroup(name, tuple(each.label for each in members), CERTAIN, ())]
    document = new_campaign("qualify", members, 1, 1, store=str(tmp_path / "store"), groups=groups).document()
    del document["groups"][0]["candidates"]
    earlier = Campaign.from_document(json.loads(json.dumps(document)))
    assert kind_of(earlier.groups[0]) == "upgrade"
    assert earlier.groups[0].sides == ((f"{name}, {OLD}",), (f"{name}, {NEW}",))
    assert f"--kafka {NEW} --against {OLD} --scenario '{name}'" in command(earlier)


def test_a_tree_is_the_build_that_is_in_it_when_the_qualification_begins(doors, tmp_path):
    """It may be built again while the runs are made."""
    tree = built(tmp_path / "my kafka")
    assert permanent(tree, [OLD]) == (f"{BUILT}ab", (OLD,))
    words = ["--against", OLD, "--scenario", "kip455/example", "--no-pairs"]
    assert main(["qualify", "--kafka", tree, *words]) == 0
    with opened(known()[0]) as journal:
        variants = journal.campaign.variants
    assert [each.kafka for each in variants[:2]] == [OLD, f"{BUILT}ab"]
    assert variants[-1].settings == (f"to={BUILT}ab", "direction=down")
    built(tmp_path / "my kafka", f"{BUILT}cd")
    assert main(["qualify", "--kafka", tree, *words, "--resume", known()[0]]) == 64


def test_a_candidate_that_lacks_features_of_a_baseline_is_refused_before_the_first_run(doors, capsys, monkeypatch):
    levels = {OLD: 29, NEW: 30}
    monkeypatch.setattr(planned, "levels_of", lambda release: {"metadata.version": levels[release.version]})
    words = ["--scenario", "kip455/example", "--no-pairs"]
    assert main(["qualify", "--kafka", OLD, "--against", NEW, *words]) == 64
    told = f"{OLD} is no upgrade of {NEW}: the cluster has finalized metadata.version=30, the release knows"
    assert told in (shown := capsys.readouterr().err) and "add --no-upgrade" in shown
    assert known() == [] and doors.executors == []
    assert main(["qualify", "--kafka", OLD, "--against", NEW, *words, "--no-upgrade"]) == 0
    assert main([*QUALIFY, *words]) == 0


def test_a_kafka_that_cannot_be_had_is_refused_before_the_first_run(doors, capsys, monkeypatch):
    def release(source):
        raise SoftwareError(f"Maven's registry has no Kafka {source}.")

    monkeypatch.setattr(planned, "kafka_release", release)
    assert main(SMALL) == 70
    assert f"no Kafka {OLD}" in capsys.readouterr().err
    assert known() == [] and doors.executors == []


def test_pairs_of_several_scenarios_take_turns_and_a_budget_cuts_all_of_them(doors, capsys):
    names = ("kip73/two-node", "kip73/one-to-two", "kip73/bounce")
    words = [word for name in names for word in ("--scenario", name, "--paired", name)]
    assert main([*QUALIFY, *words, "--no-upgrade", "--pairs", "12", "--all", "--budget", "230s"]) == 2
    assert capsys.readouterr().out.count("3 pairs, at least 5 are needed") == 1
    made = [scenario_of(label) for label in doors.executors[0].made]
    assert len(made) == 22  # 11 pairs of 20 s
    assert made[::2] == made[1::2]
    turns = [made[first : first + 6 : 2] for first in range(0, 18, 6)]
    assert all(set(turn) == set(names) for turn in turns)
    assert len(set(map(tuple, turns))) > 1
    assert main(["qualify", "--resume", known()[0], "--all"]) == 0
    assert [len(each.made) for each in doors.executors] == [22, 72 - 22]


def test_pairs_with_three_baselines_make_each_testbed_once():
    variants, groups = plan(NEW, [OLD, "4.1.1", "3.9.2"], QualificationScope(upgrades=False))
    paired = {label for group in groups if group.pairs for label in group.labels}
    assert len({resolve(each).topology_digest for each in variants if each.label in paired}) == MOST_KEPT


def test_nothing_is_run_again_where_the_first_run_passed(doors, capsys):
    assert main(SMALL) == 0
    assert len(doors.executors[0].made) == 4
    told = capsys.readouterr().out
    assert told.splitlines()[-1].startswith("OK  Kafka 4.3.1 against 4.2.1: all runs are made")


def test_what_fails_is_run_three_times_with_both_and_is_a_regression(doors, capsys, tmp_path):
    doors.verdict = lambda label: "fail" if label == f"kip455/example, {NEW}" else "pass"
    assert main([*SMALL, "--json", "--out", str(tmp_path / "out"), "--junit", str(tmp_path / "j.xml")]) == 1
    made = doors.executors[0].made
    assert (made.count(f"kip455/example, {NEW}"), made.count(f"kip455/example, {OLD}"), len(made)) == (3, 3, 8)
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["complete"]) == ("REGRESSED", True)
    assert told["reasons"] == ["REGRESSED kip455/example: records-intact failed in 3 of 3 runs; 4.2.1 in 0 of 3"]
    assert [each["verdict"] for each in told["scenarios"]] == ["REGRESSED", "OK"]
    assert ET.parse(tmp_path / "j.xml").getroot().attrib["failures"] == "1"
    page = Path(told["report"]).read_text()
    assert "records-intact failed in 3 of" in page and page.count("<main>") == 1


def test_a_log_line_of_the_candidate_alone_is_a_regression_over_all_scenarios(doors, capsys, tmp_path):
    doors.logged = lambda label: ("WARN ReplicaManager: A line.",) if of_new(label) else ()
    words = [*QUALIFY, "--suite", "kip455", "--no-pairs", "--no-upgrade"]
    assert main([*words, "--json", "--junit", str(tmp_path / "j.xml")]) == 1
    told = json.loads(capsys.readouterr().out)
    runs = len(find_suite("kip455").cases("ci"))
    assert (told["verdict"], {each["verdict"] for each in told["scenarios"]}) == ("REGRESSED", {"OK"})
    [line], [reason] = told["log_lines"], told["reasons"]
    assert (line["runs"], line["reverse"], line["of"], line["verdict"]) == (runs, 0, runs, "REGRESSED")
    assert reason.startswith(f"REGRESSED log-lines: of {runs} pairs, {NEW} alone logs it in {runs}, {OLD} alone in 0: ")
    page = Path(told["report"]).read_text()
    assert "WARN ReplicaManager: A line." in page and "; 1 new log line." in page
    assert ET.parse(tmp_path / "j.xml").getroot().attrib["failures"] == "1"
    assert len(doors.executors[0].made) == 2 * runs  # nothing is run again for it


def test_a_log_line_of_one_run_is_named_and_decides_nothing(doors, capsys):
    doors.logged = lambda label: ("WARN ReplicaManager: A line.",) if label == f"kip455/example, {NEW}" else ()
    assert main(SMALL) == 0
    assert "log-lines" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("criterion", "code"), [("isr-expansion", 0), ("records-intact", 2), ("live-records producer-1", 2)]
)
def test_a_flake_is_no_regression_but_a_lost_record_is_no_pass(doors, criterion, code):
    seen = []

    def flaky(label):
        seen.append(label)
        return "fail" if of_new(label) and "example" in label and seen.count(label) == 1 else "pass"

    doors.verdict, doors.criterion = flaky, criterion
    assert main(SMALL) == code


def test_what_is_inconclusive_is_tried_again_with_that_version_alone_and_has_its_cause(doors, capsys):
    seen = []

    def late(label):
        seen.append(label)
        return "inconclusive" if of_new(label) and "example" in label and seen.count(label) < 3 else "pass"

    doors.verdict = late
    assert main(SMALL) == 0
    made = doors.executors[0].made
    assert (made.count(f"kip455/example, {NEW}"), made.count(f"kip455/example, {OLD}")) == (3, 1)
    doors.verdict = lambda label: "inconclusive" if of_new(label) else "pass"
    assert main(SMALL) == 2
    assert "inconclusive in 3 runs (machine-load in 3 runs: 99 % busy): 20" in capsys.readouterr().out


@pytest.mark.parametrize(("factor", "code", "word"), [(1.0, 0, "OK"), (1.1, 1, "REGRESSED"), (0.9, 0, "IMPROVED")])
def test_performance_is_compared_in_pairs(doors, capsys, factor, code, word):
    doors.value = lambda label, number: 50.0 * (1 + 0.001 * (number % 3)) * (factor if of_new(label) else 1)
    assert main([*PAIRED, "--markdown"]) == code
    told = capsys.readouterr().out
    assert told.startswith(f"### {word}: ")
    row = next(each for each in told.splitlines() if "| move-seconds |" in each)
    change = float(row.split(" | ")[5].removesuffix(" %"))
    assert change == pytest.approx((factor - 1) * 100, abs=0.3)


def test_pairs_that_cannot_tell_are_two(doors):
    doors.value = lambda label, number: 50.0 * (1 + 0.3 * ((number * 7) % 5 - 2))
    assert main(PAIRED) == 2


def test_pairs_name_what_made_some_of_them_inconclusive(doors, capsys):
    seen = []

    def late(label):
        seen.append(label)
        return "inconclusive" if of_new(label) and seen.count(label) < 3 else "pass"

    doors.verdict = late
    assert main([*PAIRED, "--json"]) == 0
    [scenario] = json.loads(capsys.readouterr().out)["scenarios"]
    assert scenario["notes"] == [f"{NEW}: inconclusive in 2 of 10 runs (machine-load in 2 runs: 99 % busy)"]
    assert scenario["versions"][1]["inconclusive"] == {"machine-load": {"runs": 2, "why": "99 % busy"}}


def test_pairs_end_when_it_is_known_well_enough_and_not_with_all(doors):
    assert main([*PAIRED[:-1], "12"]) == 0
    assert len(doors.executors[0].made) == 16
    assert main([*PAIRED[:-1], "12", "--all"]) == 0
    assert len(doors.executors[1].made) == 24


def test_pairs_do_not_end_before_so_many_comparisons_can_tell(doors):
    """Eleven measures of three scenarios: what is worse in all of eight pairs was NOISY, and no more were made."""
    names = ("kip73/two-node", "kip73/one-to-two", "kip73/bounce")
    words = [word for name in names for word in ("--scenario", name, "--paired", name)]
    assert main(["qualify", "--kafka", NEW, "--against", OLD, *words, "--no-upgrade"]) == 0
    assert len(doors.executors[0].made) == 3 * 2 * 10


@pytest.mark.parametrize(("baselines", "pairs"), [(1, 10), (2, 11), (3, 11), (4, 12)])
def test_more_baselines_have_as_many_pairs_as_can_tell(baselines, pairs):
    against = [OLD, "4.1.1", "3.9.2", "4.3.0"][:baselines]
    scope = QualificationScope(suites=("kip73",), upgrades=False)
    asked = qualified.new_qualification(NEW, against, scope, 1)
    assert [group.repeats for group in asked.groups if group.pairs] == [pairs] * 3
    if pairs > 10:
        with pytest.raises(UsageError, match=f"at least {pairs} pairs"):
            qualified.new_qualification(NEW, against, replace(scope, pairs=10), 1)


def shaken(at):
    """Return `FakeExecutor.canary` with another reading of the CPU at the canary of this number."""
    read = FakeExecutor.canary

    def canary(self, variant):
        found = read(self, variant)
        return replace(found, reading={**found.reading, "cpu": 2.0}) if self.canaries - 1 == at else found

    return canary


@pytest.mark.parametrize(("factor", "code"), [(1.1, 1), (1.0, 0), (0.9, 0)])
@pytest.mark.parametrize("what", ["inconclusive", "not made", "moved", "moved at its end"])
def test_a_pair_that_is_of_no_use_is_replaced_whatever_was_measured(doors, monkeypatch, what, factor, code):
    """Five pairs are the fewest for one measure: with four of them, a release that was 10 % slower was NO-DATA."""
    doors.value = lambda label, number: 50.0 * (1 + 0.001 * (number % 3)) * (factor if of_new(label) else 1)
    seen = []

    def verdict(label):
        seen.append(label)
        return "inconclusive" if len(seen) == 4 else "pass"

    if what == "inconclusive":
        doors.verdict = verdict
    elif what == "not made":
        doors.fail = lambda label, number: TestbedError("b1 has ended") if number == 3 else None
    else:
        monkeypatch.setattr(FakeExecutor, "canary", shaken(3 if what == "moved" else 10))
    assert main([*PAIRED[:-1], "5"]) == code
    assert len(doors.executors[0].made) == 2 * (5 + 1)
    assert main(["qualify", "--resume", known()[0]]) == code
    assert doors.executors[1].made == []


def test_at_most_three_pairs_are_replaced(doors, capsys):
    doors.verdict = lambda label: "inconclusive" if of_new(label) else "pass"
    assert main([*PAIRED[:-1], "5", "--json"]) == 2
    assert len(doors.executors[0].made) == 2 * (5 + 3)
    assert json.loads(capsys.readouterr().out)["complete"]


def test_a_replacement_for_which_the_budget_lacks_is_made_by_resuming(doors):
    doors.value = lambda label, number: 50.0 * (1 + 0.001 * (number % 3)) * (1.1 if of_new(label) else 1)
    doors.fail = lambda label, number: TestbedError("b1 has ended") if number == 3 else None
    assert main([*PAIRED[:-1], "5", "--budget", "115s"]) == 2
    assert len(doors.executors[0].made) == 10
    doors.fail = lambda label, number: TestbedError("b1 has ended") if number == 0 else None
    assert main(["qualify", "--resume", known()[0]]) == 1
    assert len(doors.executors[1].made) == 3  # what failed once more, and a pair in its place


def test_a_hang_is_a_result_and_its_pair_is_not_replaced(doors, capsys):
    """Else the number of runs of Fisher's test would follow from the hangs."""
    doors.fail = lambda label, number: STUCK if of_new(label) and number < 2 else None
    assert main([*PAIRED, "--json"]) == 2
    assert len(doors.executors[0].made) == 16
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["complete"]) == ("NOISY", True)


def test_a_qualification_that_an_earlier_version_began_is_continued_without_replacements(doors):
    scope = QualificationScope(only=("kip73/two-node",), paired=("kip73/two-node",), upgrades=False)
    asked = qualified.new_qualification(NEW, [OLD], scope, 1)
    document = json.loads(json.dumps(asked.document()))
    assert [each.spares for each in Campaign.from_document(document).groups] == [SPARES]
    for group in document["groups"]:
        del group["spares"]
    earlier = Campaign.from_document(document)
    assert (len(earlier.slots), earlier.differences(asked)) == (2 * 10, [])


def test_a_criterion_that_breaks_in_pairs_is_a_regression(doors, capsys):
    doors.verdict = lambda label: "fail" if of_new(label) else "pass"
    assert main(PAIRED) == 1
    assert "records-intact: of 8 pairs judged on it, it failed in 8 for the candidate alone" in capsys.readouterr().out


def test_a_criterion_that_fails_in_all_runs_of_the_candidate_alone_needs_few_pairs(doors, capsys):
    """As where a scenario runs once. Among many comparisons the test of pairs needs ten."""
    doors.verdict = lambda label: "fail" if of_new(label) else "pass"
    assert main([*PAIRED, "--budget", "70s"]) == 1
    told = capsys.readouterr().out
    assert "records-intact failed in all 3 runs; 4.2.1 in 0 of 3\n" in told and "judged on it" not in told


def test_a_record_that_is_lost_next_to_a_run_that_was_not_judged_is_no_pass(doors, capsys):
    seen = []

    def verdict(label):
        seen.append(label)
        return ("fail" if of_new(label) else "inconclusive") if seen.count(label) == 2 else "pass"

    doors.verdict, doors.criterion = verdict, "live-records consumer-1"
    assert main(PAIRED) == 2
    told = capsys.readouterr().out
    assert "alone; in 1 run more where 4.2.1 was not judged: no machine loses a record: read its report\n" in told


def test_what_fails_with_both_always_is_no_pass(doors, capsys):
    doors.verdict = "fail"
    assert main(PAIRED) == 2
    assert "not new, and not fulfilled" in capsys.readouterr().out


@pytest.mark.parametrize("worse", ["upgrade from", "downgrade to"])
def test_upgrade_and_downgrade_are_held_against_the_same_restarts(doors, capsys, worse):
    words = [*QUALIFY, "--scenario", "kip455/example", "--no-pairs"]
    doors.verdict = lambda label: "fail" if label == f"{worse} {OLD}, {NEW}" else "pass"
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    worst, *others = told["scenarios"]
    assert (worst["scenario"], worst["run"], worst["verdict"]) == (f"{worse} {OLD}", "upgrade", "REGRESSED")
    assert [each["verdict"] for each in others] == ["OK", "OK"]
    [also] = [each for each in others if each["run"] == "upgrade"]
    assert also["versions"][0] == worst["versions"][0]
    made = [label for label in doors.executors[0].made if not label.startswith("kip455")]
    assert sorted(made.count(label) for label in set(made)) == [1, 3, 3]


def test_failed_upgrades_keep_no_other_scenario_from_its_runs(doors, capsys):
    """Two baselines; every upgrade and downgrade fails, as does a testbed whose container ends."""
    doors.fail = lambda label, number: TestbedError("b1 has ended") if "grade" in label else None
    words = ["--scenario", "kip73/two-node", "--paired", "kip73/two-node", "--pairs", "8", "--json"]
    for against in ([OLD], [OLD, "3.9.2"]):
        asked = ["qualify", "--kafka", NEW, "--against", *against, "--measure", "move-seconds", *words]
        assert main(asked) == 2
        told = {each["scenario"]: each for each in json.loads(capsys.readouterr().out)["scenarios"]}
        assert told["kip73/two-node"]["verdict"] == "OK"
        assert told[f"upgrade from {OLD}"]["reasons"] == ["it could not be run: b1 has ended"]
        assert doors.executors[-1].made.count(f"kip73/two-node, {NEW}") == 8


def test_a_budget_leaves_scenarios_without_data_and_resuming_makes_them(doors, capsys):
    assert main([*SMALL, "--budget", "25s"]) == 2
    said = capsys.readouterr()
    assert "NO-DATA" in said.out and f"--resume {known()[0]}" in said.err
    made = len(doors.executors[0].made)
    assert 0 < made < 4
    assert main(["qualify", "--resume", known()[0]]) == 0
    assert len(doors.executors[1].made) == 4 - made


def test_a_run_that_is_repeated_alone_needs_the_time_of_one_run(doors):
    """The candidate is inconclusive once; two baselines have passed, and 15 s are left for a run of 10 s."""
    doors.verdict = lambda label: "inconclusive" if of_new(label) and len(doors.executors[0].made) < 4 else "pass"
    words = ["--scenario", "kip455/example", "--no-pairs", "--no-upgrade", "--budget", "45s"]
    main(["qualify", "--kafka", NEW, "--against", OLD, "3.9.2", "--measure", "move-seconds", *words])
    assert len(doors.executors[0].made) == 4


def test_two_baselines_have_a_case_each_for_a_log_line_and_a_comment_names_what_chance_explains(
    doors, capsys, tmp_path
):
    doors.logged = lambda label: ("WARN ReplicaManager: A line.",) if label == f"kip455/example, {NEW}" else ()
    words = [*SMALL[:5], "3.9.2", *SMALL[5:], "--markdown", "--junit", str(tmp_path / "j.xml")]
    assert main(words) == 0
    told = capsys.readouterr().out
    names = [each.attrib["name"] for each in ET.parse(tmp_path / "j.xml").getroot().iter("testcase")]
    assert len(names) == len(set(names)) == 4
    assert told.count("- log-lines, explained by chance: of 2 pairs, 4.3.1 alone logs it in 1") == 2


def test_a_candidate_that_does_not_start_is_no_data_with_the_reason(doors, capsys):
    doors.fail = lambda label, number: TestbedError("Kafka on b1 does not run") if of_new(label) else None
    assert main(SMALL) == 2
    told = capsys.readouterr().out
    assert "it could not be run: Kafka on b1 does not run" in told
    doors.fail = lambda label, number: None
    assert main(["qualify", "--resume", known()[0]]) == 0


def test_a_candidate_that_never_starts_is_not_tried_for_ever(doors):
    doors.fail = lambda label, number: TestbedError("Kafka on b1 does not run") if of_new(label) else None
    words = [*QUALIFY, "--suite", "kip455", "--no-pairs", "--no-upgrade"]
    assert main(words) == 2
    made = [of_new(label) for label in doors.executors[0].made]
    cases = len(find_suite("kip455").cases("ci"))
    assert made.count(True) == CERTAIN
    assert made.count(False) <= CERTAIN + 1  # nothing is held against the others
    doors.fail = lambda label, number: None
    assert main(["qualify", "--resume", known()[0]]) == 0
    assert len(doors.executors[1].made) == 2 * cases - made.count(False)


STUCK = KafkaStuck("run run-1 was not done after 420 s and was stopped; /evidence/stacks.txt has its stacks")


def test_a_candidate_that_hangs_every_time_has_regressed_and_is_not_run_again(doors, capsys, tmp_path):
    hangs = f"kip455/example, {NEW}"
    doors.fail = lambda label, number: STUCK if label == hangs else None
    assert main([*SMALL, "--json", "--junit", str(tmp_path / "j.xml")]) == 1
    made = doors.executors[0].made
    assert (made.count(hangs), made.count(f"kip455/example, {OLD}") >= 2) == (CERTAIN, True)
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["scenarios"][0]["versions"][1]["unended"]["runs"]) == ("REGRESSED", 3)
    assert told["reasons"][0].startswith("REGRESSED kip455/example: run-complete failed in 3 of 3 runs; 4.2.1 in 0 of ")
    assert "/evidence/stacks.txt has its stacks" in told["reasons"][0]
    assert ET.parse(tmp_path / "j.xml").getroot().attrib["failures"] == "1"
    assert "Do not release it as it is" in Path(told["report"]).read_text()
    assert main(["qualify", "--resume", known()[0]]) == 1
    assert hangs not in doors.executors[1].made


def test_one_hang_is_undecided_and_says_what_to_do(doors, capsys):
    doors.fail = lambda label, number: STUCK if of_new(label) and number < 2 else None
    words = [*QUALIFY, "--scenario", "kip455/example", "--no-pairs", "--no-upgrade"]
    assert main(words) == 2
    assert doors.executors[0].made.count(f"kip455/example, {NEW}") == CERTAIN
    told = capsys.readouterr().out
    assert "NOISY" in told and "run-complete failed in 1 of 3 runs; 4.2.1 in 0 of " in told
    assert "qualify this scenario alone (--scenario)" in told


def test_a_baseline_that_hangs_keeps_no_candidate_that_passes_from_its_verdict(doors, capsys):
    doors.fail = lambda label, number: STUCK if label == f"kip455/example, {OLD}" else None
    assert main(SMALL) == 0
    assert len(doors.executors[0].made) == 4
    assert f"{OLD}: without an end" in capsys.readouterr().out
    assert main(["qualify", "--resume", known()[0]]) == 0
    assert doors.executors[1].made == []


def test_a_scenario_that_ends_with_no_version_is_no_regression_and_keeps_no_other_from_its_runs(doors, capsys):
    doors.fail = lambda label, number: STUCK if "example" in label else None
    assert main(SMALL) == 2
    assert "run-complete failed in 1 of 1 run; 3 runs would decide" in capsys.readouterr().out
    assert len(doors.executors[0].made) == 4


@pytest.mark.parametrize(
    ("ended", "code", "told"), [(False, 1, "run-complete failed in 3 of 3 runs"), (None, 2, "NO-DATA")]
)
def test_runs_that_end_early_count_unless_the_machine_explains_it(doors, capsys, ended, code, told):
    hangs = f"kip455/example, {NEW}"
    doors.verdict = lambda label: "inconclusive" if label == hangs else "pass"
    doors.ended = lambda label: ended if label == hangs else True
    assert main(SMALL) == code
    assert told in capsys.readouterr().out


def test_a_candidate_that_hangs_in_pairs_has_regressed(doors, capsys):
    doors.fail = lambda label, number: STUCK if of_new(label) else None
    assert main(PAIRED) == 1
    assert "run-complete failed in 3 of 3 runs; 4.2.1 in 0 of " in capsys.readouterr().out
    assert doors.executors[0].made.count(f"kip73/two-node, {NEW}") == CERTAIN


@pytest.mark.parametrize(
    ("blocks", "code", "told"),
    [
        ((0, 2, 4, 6, 8), 1, "failed in 5 of 10 runs; 4.2.1 in 0 of 10: more often than with 4.2.1 (Fisher"),
        ((1, 2, 3, 4, 8), 1, "p = 0.016"),  # three in a row, after a run with an end
        ((0, 3, 6, 9), 1, "p = 0.043"),
        ((0, 4, 8), 2, "run-complete failed in 3 of 10 runs; 4.2.1 in 0 of 10: chance explains that, too"),
    ],
)
def test_a_candidate_that_hangs_in_more_pairs_than_chance_explains_has_regressed(doors, capsys, blocks, code, told):
    doors.fail = lambda label, number: STUCK if of_new(label) and number // 2 in blocks else None
    assert main([*PAIRED[:-1], "10"]) == code
    assert len(doors.executors[0].made) == 20
    assert told in capsys.readouterr().out


def test_runs_in_pairs_whose_hang_the_machine_explains_count_for_nothing(doors, capsys):
    """The executor raises another error than `KafkaStuck` for them."""
    doors.fail = lambda label, number: TestbedError("busy") if of_new(label) and number // 2 % 2 else None
    assert main([*PAIRED[:-1], "10"]) == 2
    assert "run-complete" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("restarts_s", "downgrade_s", "code", "told"),
    [
        (380.0, 430.0, 0, "OK "),  # a machine 2.7 times slower than the one for which the limit of 420 s was chosen
        (425.0, 850.0, 2, "run-complete failed in 1 of 1 run; 3 runs would decide"),  # no version ends
        (380.0, float("inf"), 1, "REGRESSED "),
    ],
)
def test_a_slow_machine_is_not_taken_for_a_downgrade_that_hangs(doors, capsys, restarts_s, downgrade_s, code, told):
    doors.seconds = {f"restarts of {OLD}, {OLD}": restarts_s, f"downgrade to {OLD}, {NEW}": downgrade_s}
    words = [*QUALIFY, "--scenario", "kip455/example", "--scenario", f"downgrade to {OLD}", "--no-pairs"]
    assert main(words) == code
    assert told in capsys.readouterr().out


def test_a_candidate_whose_brokers_never_start_has_regressed(doors, capsys):
    doors.fail = lambda label, number: KafkaStuck("Kafka on b1 does not run") if of_new(label) else None
    assert main([*QUALIFY, "--suite", "kip455", "--no-pairs"]) == 1
    assert [of_new(label) for label in doors.executors[0].made].count(True) == CERTAIN
    told = capsys.readouterr().out
    assert "run-complete failed in 3 of 3 runs; 4.2.1 in 0 of " in told and "; Kafka on b1 does not run" in told


def test_a_candidate_that_never_starts_is_not_upgraded_to_either(doors):
    doors.fail = lambda label, number: TestbedError("Kafka on b1 does not run") if of_new(label) else None
    assert main([*QUALIFY, "--suite", "kip455", "--no-pairs"]) == 2
    assert [label for label in doors.executors[0].made if "grade" in label] == []


def test_a_baseline_that_never_starts_is_told_and_the_candidate_is_not_run_beside_nothing(doors, capsys, tmp_path):
    doors.fail = lambda label, number: None if of_new(label) else TestbedError("no jar")
    assert main([*PAIRED, "--markdown", "--junit", str(tmp_path / "j.xml")]) == 2
    made = [of_new(label) for label in doors.executors[0].made]
    assert made.count(False) == CERTAIN
    assert made.count(True) <= CERTAIN + 1
    assert f"{OLD}: it could not be run: no jar" in capsys.readouterr().out
    assert "no jar" in (tmp_path / "j.xml").read_text()


def test_a_candidate_that_breaks_several_scenarios_in_a_row_is_still_run_in_all_others(doors, capsys):
    """A run of a broken scenario may be stopped at its time limit. That says nothing of the others."""
    names = [f"kip455/{case.name}" for case in find_suite("kip455").cases("ci")]
    broken = {f"{name}, {NEW}" for name in names[1:5]}
    doors.fail = lambda label, number: TestbedError("not done after 900 s") if label in broken else None
    assert main([*QUALIFY, "--suite", "kip455", "--no-pairs", "--no-upgrade"]) == 2
    assert len(doors.executors[0].made) == 2 * len(names)
    assert "4 runs could not be made, the last one because: not done after 900 s" in capsys.readouterr().out


def test_without_any_baseline_the_scenarios_are_not_run_for_hours(doors, capsys):
    doors.fail = lambda label, number: None if of_new(label) else TestbedError("no jar")
    assert main([*QUALIFY, "--suite", "kip455", "--no-pairs", "--no-upgrade"]) == 2
    made = [of_new(label) for label in doors.executors[0].made]
    assert made.count(False) == CERTAIN
    assert made.count(True) <= CERTAIN + 1
    assert "the last one because: no jar" in capsys.readouterr().out


@pytest.mark.parametrize("point", range(0, 27, 2))
def test_killed_anywhere_and_resumed_the_same_runs_are_there_once(doors, monkeypatch, capsys, point):
    """One scenario of two fails and is run three times; the kill comes before or after a line of the journal."""
    doors.verdict = lambda label: "fail" if label == f"kip455/example, {NEW}" else "pass"
    count, append, store = itertools.count(), CampaignJournal.append, {}

    def killing(self, entry):
        if next(count) == point:
            raise Killed
        append(self, entry)

    monkeypatch.setattr(CampaignJournal, "append", killing)
    make = doors.slots

    def keeping(campaign, where, progress):
        found = make(campaign, where, progress)
        doors.executors[-1].store = store
        return found

    monkeypatch.setattr(run_module, "TestbedExecutor", keeping)
    with contextlib.nullcontext() if point > 24 else pytest.raises(Killed):  # 8 runs of three lines, and a last look
        main(SMALL)
    capsys.readouterr()
    assert main(["qualify", "--resume", known()[0], "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["reasons"][0].startswith("REGRESSED kip455/example: records-intact")
    with opened(known()[0]) as journal:
        done = [entry for entry in journal.entries if isinstance(entry, RunDone)]
    assert len({entry.slot for entry in done}) == len(done) == len(store) == 8


def test_the_command_on_the_page_asks_for_the_same(doors):
    assert main([*QUALIFY, "--scenario", "kip73/two-node", "--scenario", "kip73/bounce", "--pairs", "9"]) == 0
    with opened(known()[0]) as journal:
        there = journal.campaign
    again = shlex.split(command(there))
    assert again[:2] == ["testbed", "qualify"]
    assert main([*again[1:], "--resume", known()[0]]) == 0  # refused when it asked for something else


def test_upgrades_alone_are_asked_for_by_their_names_and_the_command_asks_for_the_same(doors, capsys, tmp_path):
    tree = built(tmp_path / "my kafka")
    for wanted in (["upgrade from 4.2.1"], ["upgrade from 4.2.1", "downgrade to 4.2.1"]):
        scenarios = [word for name in wanted for word in ("--scenario", name)]
        assert main(["qualify", "--kafka", tree, "--against", OLD, *scenarios, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert [each["scenario"] for each in document["scenarios"]] == wanted
        again = shlex.split(document["command"])
        assert again[again.index("--kafka") + 1 : again.index("--against") + 2] == [f"{BUILT}ab", "--against", OLD]
        assert main([*again[1:], "--resume", document["qualification"]]) == 0
        capsys.readouterr()


def test_an_upgrade_is_named_beside_cases(doors, capsys):
    words = [*QUALIFY, "--scenario", "kip455/example", "--scenario", "downgrade to 4.2.1", "--no-pairs"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["scenario"] for each in document["scenarios"]} == {"kip455/example", "downgrade to 4.2.1"}
    assert main([*shlex.split(document["command"])[1:], "--resume", known()[0]]) == 0
    assert main([*QUALIFY, "--scenario", "upgrade from 4.2.2"]) == 64
    assert "did you mean upgrade from 4.2.1?" in capsys.readouterr().err


def test_one_build_in_two_folders_is_not_held_against_itself(doors, capsys, tmp_path):
    trees = [built(tmp_path / parent / "kafka", f"{BUILT}{parent}") for parent in ("aa", "bb")]
    assert (
        main(["qualify", "--kafka", trees[0], "--against", trees[1], "--scenario", "kip455/example", "--no-pairs"]) == 0
    )
    built(tmp_path / "bb" / "kafka", f"{BUILT}aa")
    assert main(["qualify", "--kafka", trees[0], "--against", OLD, trees[1]]) == 64
    assert f"are both {BUILT}aa: name another release" in capsys.readouterr().err


def test_a_version_stays_a_version_also_where_a_folder_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / OLD).mkdir()
    (tmp_path / "two-brokers").mkdir()
    variants, groups = plan(NEW, [OLD], QualificationScope(only=("kip455/example",), paired=()))
    asked = new_campaign("qualify", variants, 1, 1, store=str(tmp_path / "store"), groups=groups)
    assert {each.kafka for each in asked.variants} == {NEW, OLD}
    [variant] = new_campaign(
        "sweep", [Variant("x", "kip73-two-node", topology="two-brokers")], 1, 1, store=str(tmp_path / "store")
    ).variants
    assert variant.topology == "two-brokers"


def test_the_worst_reason_of_pairs_is_the_first(doors, tmp_path):
    """JUnit's message and a table's cell show one reason only."""
    doors.value = lambda label, number: 50.0 * (1 + 0.001 * (number % 3)) * (0.9 if of_new(label) else 1)
    doors.verdict = lambda label: "fail" if of_new(label) else "pass"
    assert main([*PAIRED, "--junit", str(tmp_path / "j.xml")]) == 1
    [failure] = ET.parse(tmp_path / "j.xml").getroot().iter("failure")
    assert failure.attrib["message"].startswith("REGRESSED: REGRESSED, records-intact: ")


def test_the_command_names_a_suite_that_is_not_a_usual_one(doors):
    words = ["--suite", "brief", "--scenario", "brief/move", "--no-pairs", "--no-upgrade"]
    assert main([*QUALIFY, *words]) == 0
    with opened(known()[0]) as journal:
        again = shlex.split(command(journal.campaign))
    assert again[again.index("--suite") + 1] == "brief"
    assert main([*again[1:], "--resume", known()[0]]) == 0


def test_what_fails_three_times_in_a_row_is_told_and_not_in_the_way_of_the_rest(doors, capsys):
    doors.fail = lambda label, number: TestbedError("no disk") if number in (1, 2, 3) else None
    words = [*QUALIFY, "--suite", "kip455", "--no-pairs", "--no-upgrade"]
    assert main(words) == 2
    assert "3 runs in a row could not be made, the last one because: no disk" in capsys.readouterr().out
    doors.fail = lambda label, number: TestbedError("no disk") if number < 3 else None
    assert main(["qualify", "--resume", known()[0]]) == 2
    doors.fail = lambda label, number: None
    assert main(["qualify", "--resume", known()[0]]) == 0
    doors.fail = lambda label, number: TestbedError("no disk")
    assert main(words) == 70
    assert "nothing could be run" in capsys.readouterr().err


def test_another_door_does_not_go_on_with_it(doors, capsys):
    assert main(SMALL) == 0
    assert main(["compare", "--resume", known()[0]]) == 64
    assert "was begun by `testbed qualify`" in capsys.readouterr().err
    assert main([*SMALL, "--seed", "2", "--resume", known()[0]]) == 64


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["qualify"], "name the release: --kafka CANDIDATE"),
        (["qualify", "--kafka", NEW], "--against is missing"),
        (["qualify", "--kafka", NEW, "--against", NEW], "name another release"),
        (["qualify", "--kafka", "4.3", "--against", OLD], "did you mean 4.3.0?"),
        (["qualify", "--kafka", "/nowhere", "--against", OLD], "there is no Kafka at /nowhere"),
        ([*QUALIFY, "--scenario", "kip73/two-nod"], "did you mean kip73/two-node?"),
        ([*QUALIFY, "--scenario", "kip73/two-node", "--paired", "kip73/bounce"], "--paired: no scenario kip73/bounce"),
        ([*QUALIFY, "--suite", "kip1"], "no suite 'kip1'"),
        ([*QUALIFY, "--pairs", "4"], "take at least"),
        ([*QUALIFY, "--profile", "night"], "profile 'night'"),
        ([*QUALIFY[:-1], "move-second"], "move-second"),
    ],
)
def test_refusals_come_before_anything_is_made(doors, words, told, capsys):
    assert main(words) == 64
    assert told in capsys.readouterr().err
    assert known() == [] and doors.executors == []


@pytest.mark.parametrize(
    ("words", "known_name"),
    [
        (["--scenario", "kip73/two-nod"], "did you mean kip73/two-node?"),
        (["--scenario", "upgrade from 4.2.2"], f"did you mean upgrade from {OLD}?"),
        (["--scenario", f"upgrade from {OLD}", "--no-upgrade"], "kip73/two-node, "),
        (["--paired", "kip73/two-nod"], "did you mean kip73/two-node?"),
        (["--suite", "kip37"], "kip73, "),
        (["--profile", "night"], "smoke, ci, release"),
        (["--measure", "move-second"], "move-seconds, "),
    ],
)
def test_a_wrong_name_is_refused_before_a_kafka_is_fetched(words, known_name, doors, monkeypatch, capsys):
    fetched = []
    monkeypatch.setattr(planned, "kafka_release", fetched.append)
    assert main([*QUALIFY, *words]) == 64
    assert fetched == [] and doors.executors == []
    assert known_name in capsys.readouterr().err


def test_an_upgrade_from_a_build_is_named_by_its_version(doors, tmp_path):
    tree = built(tmp_path / "my kafka")
    assert main(["qualify", "--kafka", NEW, "--against", tree, "--scenario", f"upgrade from {BUILT}ab"]) == 0
    assert main(["qualify", "--kafka", NEW, "--against", tree, "--scenario", f"upgrade from {BUILT}cd"]) == 64


def test_what_is_no_kafka_is_refused():
    with pytest.raises(UsageError, match="no Kafka"):
        permanent("x", [OLD])
