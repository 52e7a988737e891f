"""`testbed sweep` and `testbed compare`, whole, with an executor that makes nothing."""

import html
import json
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.cli.main import main
from testbed.errors import SoftwareError, TestbedError
from testbed.provision import software as softwares
from testbed.runner import campaign as campaigns
from testbed.runner.journal import known, opened
from testbed.runner.variant import Variant, check_labels, of_each
from testbed.topology.find import READY

ID = "20261121T200000Z"


COMPARE = ["compare", "--variant", "old: fetch=default", "--variant", "new: fetch=tuned", "--measure", "move-seconds"]


def slower(label, factor):
    return lambda variant, number: 50.0 * (1 + 0.001 * (number % 3)) * (factor if variant == label else 1)


@pytest.mark.parametrize(("factor", "code", "word"), [(1.0, 0, "OK"), (1.1, 1, "REGRESSED"), (0.9, 0, "IMPROVED")])
def test_compare_says_what_became_of_the_second(doors, capsys, factor, code, word):
    doors.value = slower("new", factor)
    assert main([*COMPARE, "--pairs", "8"]) == code
    told = capsys.readouterr().out
    assert told.splitlines()[-1].startswith(f"{word}  ")
    assert "against old:" in told


def test_compare_that_cannot_tell_is_two(doors, capsys):
    doors.value = lambda variant, number: 50.0 * (1 + 0.3 * ((number * 7) % 5 - 2))
    assert main([*COMPARE, "--pairs", "8"]) == 2
    assert "NOISY" in capsys.readouterr().out


def test_compare_in_json(doors, capsys):
    doors.value = slower("new", 1.1)
    assert main([*COMPARE, "--pairs", "8", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["series"]) == ("REGRESSED", known()[0])
    [finding] = told["findings"]
    assert finding["interval"][0] < 1.1 < finding["interval"][1] * 1.01
    assert len(finding["pairs"]) == 8
    assert told["variants"][1]["runs"] == {"pass": 8}


def test_one_lost_record_asks_for_its_report_and_not_for_more_pairs(doors, capsys):
    seen = []

    def once(label):
        seen.append(label)
        return "fail" if label == "new" and seen.count("new") == 1 else "pass"

    doors.verdict = once
    assert main([*COMPARE, "--pairs", "8"]) == 2
    [line] = [each for each in capsys.readouterr().out.splitlines() if "records-intact  " in each]
    assert line.endswith("for the baseline alone: no machine loses a record: read its report")


def test_variants_with_different_settings_have_a_document(doors, capsys):
    """The command of a sweep with these variants, of which JSON has nothing, ended in a traceback after all runs."""
    words = ["--variant", "old: fetch=default", "--variant", "new: rate=5MB/s", "--measure", "move-seconds"]
    assert main(["compare", *words, "--pairs", "8", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["settings"] for each in document["variants"]] == [
        {"fetch": "default", "rate": ""},
        {"fetch": "", "rate": "5MB/s"},
    ]
    assert document["growth"] == []


def test_compare_names_a_log_line_that_the_second_alone_writes(doors, capsys, tmp_path):
    doors.logged = lambda label: ("WARN ReplicaManager: A line.",) if label == "new" else ()
    words = "of 8 pairs, new alone logs it in 8, old alone in 0: WARN ReplicaManager: A line."
    assert main([*COMPARE, "--pairs", "8", "--junit", str(tmp_path / "j.xml")]) == 1
    told = capsys.readouterr().out
    assert words in next(line for line in told.splitlines() if line.startswith("REGRESSED  new  "))
    assert "new against old: WARN ReplicaManager: A line." in (tmp_path / "j.xml").read_text()
    assert main(["compare", "--resume", known()[0], "--json"]) == 1
    [line] = json.loads(capsys.readouterr().out)["log_lines"]
    assert (line["kinds"], line["verdict"], line["runs"], line["of"]) == (
        ["WARN ReplicaManager: A line."],
        "REGRESSED",
        8,
        8,
    )
    assert main(["compare", "--resume", known()[0], "--markdown"]) == 1
    assert f"| {words} |" in capsys.readouterr().out


def test_compare_for_a_pull_request_and_for_ci(doors, capsys, tmp_path):
    doors.value = slower("new", 1.1)
    assert main([*COMPARE, "--pairs", "8", "--markdown", "--junit", str(tmp_path / "out" / "j.xml")]) == 1
    told = capsys.readouterr().out
    assert told.startswith("### REGRESSED: kip73-two-node, against old\n")
    row = next(each for each in told.splitlines() if "| move-seconds |" in each).split(" | ")
    assert row[0] == "| **REGRESSED**" and float(row[7]) <= 0.05 and row[8] == "8"
    suite = ET.parse(tmp_path / "out" / "j.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("2", "1", "0")
    assert "adjusted p" in suite.find(".//failure").attrib["message"]
    assert main(["compare", "--resume", known()[0], "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert [finding["before"], finding["after"]] == row[3:5]


def test_a_budget_that_ends_after_enough_pairs_is_no_error_for_ci_and_before_it_is(doors, capsys, tmp_path):
    doors.value = lambda variant, number: 50.0 * (1 + 0.02 * ((number // 2) % 3 - 1))
    words = [*COMPARE, "--pairs", "12", "--markdown", "--junit", str(tmp_path / "j")]
    assert main([*words, "--budget", "60s"]) == 2
    assert "**not complete**" in capsys.readouterr().out
    errors = ET.parse(tmp_path / "j").getroot().findall(".//error")
    assert any("continues it" in each.attrib["message"] for each in errors)


def test_a_kafka_that_never_starts_ends_the_comparison_and_says_why(doors, capsys, tmp_path):
    doors.fail = lambda label, number: TestbedError("b1 does not run: no jar") if label == "new" else None
    assert main([*COMPARE, "--pairs", "10", "--junit", str(tmp_path / "j")]) == 2
    assert doors.executors[0].made.count("old") <= 4
    assert doors.executors[0].made.count("new") == 3
    told = capsys.readouterr().out
    assert "new was not run 3 times: b1 does not run: no jar\n" in told
    assert any("no jar" in each.attrib["message"] for each in ET.parse(tmp_path / "j").getroot().iter("error"))
    assert main(["compare", "--resume", known()[0], "--json"]) == 2
    assert "no jar" in json.loads(capsys.readouterr().out)["problems"][0]
    doors.fail = lambda label, number: None
    assert main(["compare", "--resume", known()[0]]) == 0
    doors.fail = lambda label, number: TestbedError("no jar") if label == "old" else None
    assert main([*COMPARE, "--pairs", "10"]) == 2
    assert doors.executors[-1].made.count("new") <= 4


def test_kafkas_are_called_by_the_last_part_of_their_paths(doors, capsys, tmp_path):
    builds = [tmp_path / name / "my builds, kafka_2.13-4.4.0-SNAPSHOT" for name in ("a:b", "c@d")]
    for each in builds:
        each.mkdir(parents=True)
    variants = of_each(Variant("x", "kip73-two-node"), ["4.2.1", *map(str, builds)])
    name = "my-builds-kafka_2.13-4.4.0-SNA"
    assert [each.label for each in variants] == ["kafka 4.2.1", f"kafka {name}", f"kafka {name}, 2"]
    assert [each.kafka for each in variants] == ["4.2.1", *map(str, builds)]
    check_labels(variants)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder whose file `version` names the build in it."""
    folder = tmp_path / "kafka"
    folder.mkdir()
    (folder / "version").write_text("4.4.0+0123456789ab")
    release = lambda source: SimpleNamespace(version=(source.path / "version").read_text())  # noqa: E731
    monkeypatch.setattr(campaigns, "kafka_release", release)
    return folder


def test_a_folder_is_the_build_that_is_in_it_when_the_campaign_begins(doors, tree, capsys):
    """It may be built again while the runs are made, and before a resume."""
    words = ["compare", "--kafka", "4.3.1", "--kafka", str(tree), "--pairs", "8", "--measure", "move-seconds"]
    assert main(words) == 0
    with opened(known()[0]) as journal:
        variants = journal.campaign.variants
    assert [(each.label, each.kafka) for each in variants] == [
        ("kafka 4.3.1", "4.3.1"),
        ("kafka kafka", "4.4.0+0123456789ab"),
    ]
    (tree / "version").write_text("4.4.0+ba9876543210")
    assert main(["compare", "--resume", known()[0]]) == 0
    assert main([*words, "--resume", known()[0]]) == 64
    assert "kafka: 4.4.0+0123456789ab there, 4.4.0+ba9876543210 here, of kafka kafka" in capsys.readouterr().err


def test_what_a_topology_names_by_a_path_is_the_build_of_the_campaigns_beginning(doors, tmp_path, monkeypatch, capsys):
    """It may be built again while the runs are made, and be gone before a resume."""
    build, read = ["d1"], []
    manager = lambda folder: read.append(folder) or SimpleNamespace(digest=build[0])  # noqa: E731
    monkeypatch.setattr(softwares, "remote_storage_manager", manager)
    text = (READY / "s3.yaml").read_text()
    assert "remote_storage: {}" in text
    mine = tmp_path / "mine.yaml"
    mine.write_text(text.replace("remote_storage: {}", "remote_storage: {manager: ./rsm}"))
    words = [*COMPARE, "--pairs", "8", "--topology", str(mine)]
    assert main(words) == 0
    folder = str(tmp_path / "rsm")
    assert read == [folder]
    with opened(known()[0]) as journal:
        assert journal.campaign.builds == {folder: "d1"}
    assert main([*words, "--resume", known()[0]]) == 0
    build[0] = "d2"
    capsys.readouterr()
    assert main([*words, "--resume", known()[0]]) == 64
    assert f"another build: {folder}" in capsys.readouterr().err
    read.clear()
    assert main(["compare", "--resume", known()[0]]) == 0
    assert read == []


def test_a_folder_is_read_once_for_all_variants_that_name_it(tree, tmp_path, monkeypatch):
    """Reading takes a second for each, and the folder may be built again between two of them."""
    release, read = campaigns.kafka_release, []
    monkeypatch.setattr(campaigns, "kafka_release", lambda source: read.append(source) or release(source))
    variants = [Variant(label, "kip73-two-node", kafka=str(tree)) for label in ("one", "two", "three")]
    asked = campaigns.new_campaign("sweep", variants, 1, 1, store=str(tmp_path / "store"))
    assert [each.kafka for each in asked.variants] == ["4.4.0+0123456789ab"] * 3
    assert len(read) == 1


def test_a_measure_has_todays_name_and_is_compared_once(tmp_path):
    """Runs have no value by an earlier name: hours later the verdict was NO-DATA."""
    variants = [Variant("old", "kip73-two-node"), Variant("new", "kip73-two-node", settings=("fetch=tuned",))]
    names, where = ("nic-peak", "move-seconds", "nic-max-1s"), str(tmp_path / "store")
    asked = campaigns.new_campaign("compare", variants, 8, 1, store=where, measure_names=names)
    assert asked.measures == ("nic-max-1s", "move-seconds")


def test_a_campaign_whose_journal_has_a_path_is_resumed_by_its_whole_command(doors, tree, monkeypatch):
    """A version before this one stored the path of a build, and not the build."""
    words = ["compare", "--kafka", "4.3.1", "--kafka", str(tree), "--pairs", "8", "--measure", "move-seconds"]
    with monkeypatch.context() as earlier:
        earlier.setattr(campaigns, "lasting_kafka", lambda text: text)
        earlier.setattr(campaigns, "builds_of", lambda _topologies: {})
        assert main(words) == 0
    with opened(known()[0]) as journal:
        assert [each.kafka for each in journal.campaign.variants] == ["4.3.1", str(tree)]
    assert main([*words, "--resume", known()[0]]) == 0


def test_an_upgrades_folder_is_the_build_that_is_in_it_when_the_campaign_begins(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"upgrade": ("pause=10s", "to=./kafka"), "restarts": ("to=same",)}
    variants = [Variant(label, "kip73-upgrade", settings=words) for label, words in settings.items()]
    asked = campaigns.new_campaign("sweep", variants, 1, 1, store=str(tmp_path / "store"))
    assert [each.settings for each in asked.variants] == [("pause=10s", "to=4.4.0+0123456789ab"), ("to=same",)]


def test_a_build_is_not_compared_with_itself(doors, tree, capsys):
    """Someone has changed the sources and not built them."""
    other = tree.with_name("changed")
    other.mkdir()
    (other / "version").write_text("4.4.0+0123456789ab")
    assert main(["compare", "--kafka", str(tree), "--kafka", str(other), "--pairs", "8"]) == 64
    told = capsys.readouterr().err
    assert f"{tree} is 4.4.0+0123456789ab, {other} is 4.4.0+0123456789ab; build the changed sources first" in told
    assert known() == [] and doors.executors == []


def test_a_folder_that_is_not_built_is_refused_before_the_first_run(doors, tree, monkeypatch, capsys):
    def release(source):
        raise SoftwareError(f"{source} is a checkout that is not built: run `./gradlew jar` in it")

    monkeypatch.setattr(campaigns, "kafka_release", release)
    assert main(["compare", "--kafka", "4.3.1", "--kafka", str(tree), "--pairs", "8"]) == 70
    assert "run `./gradlew jar` in it" in capsys.readouterr().err
    assert known() == [] and doors.executors == []


def test_a_part_of_what_is_run_is_refused_with_resume(doors, capsys):
    assert main([*COMPARE, "--pairs", "8"]) == 0
    assert main(["compare", "--resume", known()[0], "--pairs", "20", "--threshold", "1"]) == 64
    assert "--pairs, --threshold with --resume" in capsys.readouterr().err
    assert main(["compare", "--resume", known()[0], "--seed", "0"]) == 64
    assert main([*COMPARE, "--pairs", "8", "--resume", known()[0], "--store", "other"]) == 64
    assert "store: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--budget", ""], ["--junit", "/"], ["--junit", "/dev/null/there/j.xml"]])
def test_what_would_be_found_after_hours_is_refused_before(doors, words):
    assert main([*COMPARE, "--pairs", "8", *words]) == 64
    assert doors.executors == []


def test_compare_ends_early_when_the_answer_is_known_and_not_with_all(doors, capsys, tmp_path):
    assert main([*COMPARE, "--pairs", "12"]) == 0
    assert len(doors.executors[0].made) == 16
    assert "known well enough" in capsys.readouterr().out
    assert main([*COMPARE, "--resume", known()[0], "--pairs", "12", "--markdown", "--junit", str(tmp_path / "j")]) == 0
    told = capsys.readouterr().out
    assert "known well enough" in told and "not complete" not in told and "continues it" not in told
    assert ET.parse(tmp_path / "j").getroot().attrib["errors"] == "0"
    assert doors.executors.pop().made == []
    assert main([*COMPARE, "--pairs", "12", "--all"]) == 0
    assert len(doors.executors[1].made) == 24


def test_an_interrupted_series_is_gone_on_with(doors, capsys):
    doors.fail = lambda variant, number: TestbedError("no disk") if number >= 3 else None
    assert main([*COMPARE, "--pairs", "8"]) == 70
    assert f"continue with --resume {known()[0]}" in capsys.readouterr().err
    doors.fail = lambda variant, number: None
    assert main(["compare", "--resume", known()[0]]) == 0
    assert len(doors.executors[1].made) == 13
    assert main([*COMPARE, "--pairs", "8", "--resume", known()[0]]) == 0
    assert len(doors.executors[2].made) == 0


def test_the_default_measures_of_an_earlier_version_are_no_other_option(doors, capsys, monkeypatch):
    words = [*COMPARE[:-2], "--pairs", "8"]
    before = campaigns.default_measures
    with monkeypatch.context() as earlier:
        without = lambda *asked: tuple(each for each in before(*asked) if each != "connections-opened")  # noqa: E731
        earlier.setattr(campaigns, "default_measures", without)
        assert main(words) == 0
    assert main([*words, "--resume", known()[0]]) == 0
    assert doors.executors[1].made == []
    assert main([*COMPARE, "--pairs", "8", "--resume", known()[0]]) == 64
    assert "measures: " in capsys.readouterr().err


def test_a_series_is_not_gone_on_with_as_another_one(doors, capsys):
    assert main([*COMPARE, "--pairs", "8"]) == 0
    assert main([*COMPARE, "--pairs", "9", "--resume", known()[0]]) == 64
    assert "repeats: 8 there, 9 here" in capsys.readouterr().err
    assert main(["sweep", "--resume", known()[0]]) == 64
    assert "was begun by `testbed compare`" in capsys.readouterr().err


def test_a_topology_that_was_changed_since_is_noticed_and_found_from_everywhere(doors, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (READY / "two-brokers.yaml").read_text()
    Path("mine.yaml").write_text(text)
    assert main([*COMPARE, "--pairs", "8", "--topology", "mine.yaml", "--store", "here"]) == 0
    monkeypatch.chdir("/")
    capsys.readouterr()
    assert main(["compare", "--resume", known()[0], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["store"] == str(tmp_path / "here")
    (tmp_path / "mine.yaml").write_text(text.replace("400mbit", "200mbit"))
    assert main(["compare", "--resume", known()[0]]) == 64
    assert "the topology has changed since" in capsys.readouterr().err


def test_sweep_tells_each_combination_and_its_code_is_of_the_runs(doors, capsys):
    words = ["sweep", "kip73-two-node", "--set", "rate=5MB/s,10MB/s", "--set", "fetch=default,tuned"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert [line.split("  ")[0] for line in told.splitlines()[1:5]] == [
        "rate=5MB/s fetch=default",
        "rate=5MB/s fetch=tuned",
        "rate=10MB/s fetch=default",
        "rate=10MB/s fetch=tuned",
    ]
    assert len(doors.executors[0].made) == 4
    doors.fail = lambda variant, number: TestbedError("x") if number == 0 else None
    assert main(words) == 2
    told = capsys.readouterr().out
    assert any(f"testbed sweep --resume {campaign}` continues it" in told for campaign in known())


def test_sweep_over_releases_leaves_a_page_that_says_how_to_make_it_again(doors, capsys):
    words = ["sweep", "kip73-two-node", "--set", "rate=5MB/s,10MB/s", "--set", "partitions=50"]
    words += ["--kafka", "3.9.2,4.3.1"]
    assert main([*words, "--repeats", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [variant["settings"] for variant in told["variants"]] == [
        {"rate": rate, "kafka": kafka} for rate in ("5MB/s", "10MB/s") for kafka in ("3.9.2", "4.3.1")
    ]
    low, high = told["variants"][0]["ranges"]["move-seconds"]
    assert low <= told["variants"][0]["medians"]["move-seconds"] <= high
    page = Path(told["report"]).read_text()
    assert "4 combinations of rate, kafka" in page
    again = shlex.split(html.unescape(re.search("<pre>(.*?)</pre>", page)[1]))
    assert again[0] == "testbed"
    capsys.readouterr()
    assert main([*again[1:], "--markdown"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].startswith("| rate | kafka | passed | observed ÷ quota |")
    assert table[2].split(" | ")[:3] == ["| 5MB/s", "3.9.2", "2 of 2"]


def test_one_release_is_no_axis(doors, capsys):
    assert main(["sweep", "kip73-two-node", "--set", "rate=5MB/s,10MB/s", "--kafka", "3.9.2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [variant["settings"] for variant in told["variants"]] == [{"rate": "5MB/s"}, {"rate": "10MB/s"}]


def test_sweep_within_a_budget(doors, capsys):
    assert main(["sweep", "kip73-two-node", "--set", "fetch=default,tuned", "--repeats", "50", "--budget", "2m"]) == 2
    assert len(doors.executors[0].made) == 12  # 10 s each
    assert "the time budget" in capsys.readouterr().out


def test_runs_that_did_not_pass_are_named_with_what_failed(doors, capsys):
    doors.verdict = "fail"
    assert main(["sweep", "kip73-two-node", "--set", "fetch=default,tuned"]) == 1
    told = capsys.readouterr().out
    assert "fail: records-intact" in told
    assert "`testbed results show RUN` says why" in told


@pytest.mark.parametrize("words", [["sweep", "kip73-two-node"], COMPARE, ["nightly"], ["results", "judge"]])
def test_one_form_of_output_is_printed(doors, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json", "--markdown"])
    assert ended.value.code == 64
    assert "--markdown: not allowed with argument --json" in capsys.readouterr().err


def test_json_has_the_runs_that_did_not_pass_as_the_table_has_them(doors, capsys):
    doors.verdict = lambda label: "fail" if label == "new" else "pass"
    assert main([*COMPARE, "--pairs", "8", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    shown = {each["label"]: each["not_passed"] for each in document["variants"]}
    assert [len(each) for each in shown.values()].count(0) == 1
    assert all(line.endswith("fail: records-intact") for lines in shown.values() for line in lines)
    assert document["broken"][0]["adjusted"] <= 0.05


def test_every_run_is_confirmed_before_anything_is_told(doors):
    main([*COMPARE, "--pairs", "8"])
    assert doors.confirmed == [16 * 3 + 1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sweep"], "name an experiment"),
        (["sweep", "kip73-twonode"], "did you mean kip73-two-node?"),
        (["sweep", "kip73-two-node", "--set", "rate=5MB/s,10"], "--set rate=10"),
        (["sweep", "kip73-two-node", "--repeats", "0"], "at least 1"),
        (["sweep", "kip73-two-node", "--budget", "soon"], "--budget soon"),
        (["sweep", "kip73-two-node", "--measure", "speed"], "no measure 'speed'"),
        (["sweep", "kip73-two-node", "--store", "ftp://x"], "scheme 'ftp' is not known"),
        (["sweep", "--resume", f"{ID}-sweep-0a1b2c"], "there is no campaign"),
        (["sweep", "kip73-two-node", "--kafka", "3.9.2,"], "--set kafka=3.9.2,"),
        ([*COMPARE, "--measure", "quota-bound-11s"], "quota-bound-11s says nothing of better or worse"),
        (["compare"], "no variants are named: give --kafka A --kafka B"),
        (["compare", "--kafka", "4.3.1"], "nothing to compare it with"),
        (["compare", "--kafka", "4.3.1", "--kafka", "4.3.1"], "there twice"),
        (["compare", "--kafka", "4.3.1", "--kafka", "4.2.1", "--pairs", "2"], "take at least 3 pairs"),
        (["compare", "--kafka", "4.3.1", "--kafka", "4.2.1", "--threshold", "300"], "threshold 3.0"),
        (["compare", "--kafka", "4.3.1", "--variant", "a: fetch=tuned"], "either --kafka A --kafka B, or --variant"),
        (["compare", "--variant", "a: fetch=tunned", "--variant", "b: fetch=default"], "did you mean tuned?"),
        ([*COMPARE, "--set", "rate=5MB/s", "--set", "rate=6MB/s"], "rate is set twice: 5MB/s and 6MB/s; leave one out"),
    ],
)
def test_refusals_come_before_anything_is_made(doors, words, told, capsys):
    assert main(words) == 64
    assert told in capsys.readouterr().err
    assert known() == []
    assert doors.executors == []
