"""`testbed run` of a comparison, whole, with an executor that makes nothing."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from results.compare.compared_measures import find_measure
from testbed.cli.main import main
from testbed.runner.campaign import new_campaign
from testbed.runner.journal import known
from testbed.runner.named_comparisons import COMMAND, named_comparisons
from testbed.runner.report import command
from testbed.runner.variant import resolve
from testbed.software.automq import VARIABLE

SCALED = ("scale-out", "scale-in")


@pytest.mark.parametrize("name", named_comparisons())
def test_every_variant_can_be_run_and_every_measure_is_there(name):
    comparison = named_comparisons()[name]
    for variant in comparison.variants([], "ci", None, None):
        assert resolve(variant).experiment.name == comparison.experiment
    assert all(find_measure(measure) for measure in comparison.measures)


OF_STORAGE = [name for name, each in named_comparisons().items() if each.experiment in ("s3-reassign", *SCALED)]


@pytest.mark.parametrize("name", OF_STORAGE)
@pytest.mark.parametrize("profile", ["smoke", "release"])
def test_the_smallest_size_of_a_comparison_is_enough_for_its_tiered_partitions_in_every_profile(name, profile):
    variants = named_comparisons()[name].variants([], profile, None, None)
    assert {resolve(variant).settings["storage"] for variant in variants} >= {"disk", "tiered"}


@pytest.mark.parametrize("name", OF_STORAGE)
def test_the_command_of_a_comparison_names_it_and_no_other_with_the_same_measures(doors, monkeypatch, name):
    monkeypatch.delenv(VARIABLE, raising=False)
    comparison = named_comparisons()[name]
    variants = comparison.variants([], "ci", None, None)
    assert command(new_campaign(COMMAND, variants, 1, 1, measure_names=comparison.measures)).startswith(
        f"testbed run {name} --set storage=disk,tiered --set partitions="
    )


@pytest.mark.parametrize("name", [name for name in OF_STORAGE if name.endswith("-sizes")])
def test_a_comparison_by_size_from_before_it_gave_the_partitions_has_a_command(doors, monkeypatch, name):
    monkeypatch.delenv(VARIABLE, raising=False)
    comparison = named_comparisons()[name]
    variants = [
        replace(each, settings=tuple(word for word in each.settings if not word.startswith("partitions=")))
        for each in comparison.variants([], "ci", None, None)
    ]
    assert command(new_campaign(COMMAND, variants, 1, 1, measure_names=comparison.measures)).startswith(
        f"testbed run {name} --set storage=disk,tiered --set size="
    )


def test_a_comparison_with_the_measures_of_an_earlier_version_can_be_resumed(doors, monkeypatch):
    """It was refused as another campaign, and its page could not be written: no comparison had these measures."""
    monkeypatch.delenv(VARIABLE, raising=False)
    comparison = named_comparisons()["s3-compare"]
    assert "produce-gap" in comparison.measures
    earlier = tuple(name for name in comparison.measures if name != "produce-gap")
    variants = comparison.variants([], "ci", None, None)
    before = new_campaign(COMMAND, variants, 1, 1, measure_names=earlier)
    assert before.differences(new_campaign(COMMAND, variants, 1, 1, measure_names=comparison.measures)) == []
    assert command(before).startswith("testbed run s3-compare --set storage=disk,tiered --set partitions=1,100 ")


def test_the_modes_are_run_interleaved_as_often_as_asked(doors, capsys):
    assert main(["run", "batching-compare", "--repeats", "2"]) == 0
    [executor] = doors.executors
    modes = [label.removeprefix("mode=") for label in executor.made]
    assert sorted(modes[:5]) == sorted(modes[5:]) == ["batched", "incremental", "paced", "spread", "unbatched"]
    told = capsys.readouterr().out
    assert "not compared with mode=unbatched: --repeats 2, and 5 are needed" in told
    page = Path(re.search(r"report (\S+)", told).group(1)).read_text()
    again = "--set mode=unbatched,batched,incremental --set reassignment-batch-size=6 --profile ci --repeats 2 --seed 1"
    assert f"testbed run batching-compare {again}" in page


@pytest.mark.parametrize("name", [name for name, each in named_comparisons().items() if each.labelled])
@pytest.mark.parametrize("given", [["rate=5MB/s"], ["partitions=12", "preload=20s", "replicas=1"]], ids=["1", "3"])
def test_the_command_of_a_comparison_gives_the_same_variants_again(doors, capsys, name, given):
    words = [word for each in given for word in ("--set", each)]
    assert main(["run", name, "--repeats", "1", *words, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    again = re.search(rf"testbed run {name} ([^<]*)", Path(first["report"]).read_text()).group(1).split()
    assert main(["run", name, *again, "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert [each["label"] for each in second["variants"]] == [each["label"] for each in first["variants"]]
    assert first["variants"][0]["label"].endswith("unbatched")


def test_settings_are_of_all_variants_or_replace_an_axis(doors, capsys):
    words = ["--set", "rate=5MB/s", "--set", "replicas=1", "--set", "reassignment-batch-size=2,4", "--repeats", "1"]
    assert main(["run", "batching-tradeoff", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    sizes = ["reassignment-batch-size=2", "reassignment-batch-size=4"]
    assert [each["label"] for each in told["variants"]] == ["unbatched", *sizes]
    assert "run batching-tradeoff" in Path(told["report"]).read_text()


@pytest.mark.parametrize(
    ("name", "given", "labels"),
    [
        ("batching-compare", "reassignment-batch-size=2,4", []),
        ("batching-compare", "reassignment-batch-size=4", ["spread", "paced"]),
        ("batching-tradeoff", "rate=5MB/s,8MB/s", []),
        ("batching-tradeoff", "replicas=1,4", ["unbatched"]),
    ],
)
def test_a_variant_that_is_no_combination_has_no_default_of_what_others_vary(name, given, labels):
    comparison = named_comparisons()[name]
    variants = comparison.variants([given], "ci", None, None)
    assert [each.label for each in variants if each.label in comparison.labelled] == labels
    assert all(resolve(each) for each in variants)


def test_an_interrupted_comparison_is_gone_on_with(doors, capsys):
    doors.fail = lambda variant, number: KeyboardInterrupt() if number == 2 else None
    assert main(["run", "batching-compare", "--repeats", "1"]) == 130
    doors.fail = lambda variant, number: None
    assert main(["run", "batching-compare", "--repeats", "1", "--resume", known()[0]]) == 0
    assert len(doors.executors[1].made) == 3


def test_an_interrupted_comparison_is_continued_by_its_id_alone(doors, capsys):
    """Its name with the options of another call is refused: it would be another comparison."""
    doors.fail = lambda variant, number: KeyboardInterrupt() if number == 2 else None
    assert main(["run", "batching-compare", "--repeats", "1", "--kafka", "4.2.1"]) == 130
    doors.fail = lambda variant, number: None
    assert main(["run", "batching-compare", "--repeats", "1", "--resume", known()[0]]) == 64
    assert "kafka: 4.2.1 there, the default here, of mode=unbatched, mode=batched" in capsys.readouterr().err
    assert main(["run", "--resume", known()[0], "--kafka", "4.2.1"]) == 64
    assert "repeat the whole command, with the comparison" in capsys.readouterr().err
    assert main(["run", "--resume", known()[0]]) == 0
    assert len(doors.executors[1].made) == 3


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "name an experiment or a comparison"),
        (["kip73-two-node", "--repeats", "3"], "--repeats: kip73-two-node is one run"),
        (["kip73-two-node", "--resume", "x"], "--resume: kip73-two-node is one run"),
        (["batching-compare", "--on", "mine"], "leave --on out"),
        (["batching-compare", "--defect", "late-isr"], "takes a defect as a setting: --set defect=late-isr"),
        (["batching-compare", "--set", "mode=at-once"], "allowed are unbatched, batched, incremental"),
        (["batching-compare", "--set", "replicas=0"], "expected a whole number from 1"),
        (["kip73-two-node", "--set", "rate=5MB/s", "--set", "rate=6MB/s"], "rate is set twice: 5MB/s and 6MB/s"),
        (["batching-compare", "--set", "mode=batched", "--set", "mode=unbatched"], "mode is set twice: batched and"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_made(doors, capsys, words, why):
    assert main(["run", *words]) == 64
    assert why in capsys.readouterr().err
    assert not doors.executors


def test_comparisons_are_listed_beside_the_experiments(capsys):
    assert main(["experiments"]) == 0
    assert "batching-tradeoff" in capsys.readouterr().out
    assert main(["experiments", "batching-compare"]) == 0
    assert "mode=unbatched,batched,incremental" in capsys.readouterr().out
