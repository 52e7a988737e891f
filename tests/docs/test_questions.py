"""docs/questions.md is current: the keys of the JSON documents and the exit codes are those of the code."""

import json
import re
from pathlib import Path

import pytest

from results.contract.archive import export_runs, import_runs
from results.contract.store import Store
from results.nights import render
from results.verdicts import EXIT as NIGHT_EXIT
from testbed.argument_parser import USAGE
from testbed.cli.main import FAILED, INTERRUPTED, main
from testbed.cli.verdicts import EXIT, as_json
from testbed.experiments.experiment_run import RunResult
from testbed.setup.check import EX_UNAVAILABLE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")


def cells(begin):
    """Return the cells of the only row that begins with this text."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {begin} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def names(text):
    return re.findall(r"`([a-z_]+)`", text)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with one recorded run."""
    folder = tmp_path_factory.mktemp("questions")
    every, one = Store.open(folder / "every"), Store.open(folder / "one")
    import_runs(every, ROOT / "results" / "example" / "kafka-4.3.1.tar")
    export_runs(every, every.runs()[:1], folder / "one.tar")
    import_runs(one, folder / "one.tar")
    return folder / "one"


def printed(capsys, *words):
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)


def test_the_keys_of_a_run_are_those_of_its_document():
    result = RunResult("id", "kip73-two-node", "pass", (), (), Path("report.html"), "store")
    assert names(cells("`run`")[1]) == list(json.loads(as_json(result)))


def test_the_keys_of_recorded_runs_are_those_of_their_documents(capsys, store):
    shown = printed(capsys, "results", "show", "--json", "--store", str(store))
    assert names(cells("`results show`")[1]) == list(shown)
    listed = printed(capsys, "results", "list", "--json", "--store", str(store))
    assert list(listed) == ["store", "runs", "problems"]
    assert list(listed["runs"][0]) == [key for key in shown if key not in ("parameters", "criteria")]
    described = re.findall(r"^\| (`.*`) \| ", PAGE.partition("| key of a criterion |")[2].partition("\nRates")[0], re.M)
    assert {name for cell in described for name in names(cell)} == set(shown["criteria"][0])


def test_the_keys_of_a_night_are_those_of_its_document():
    described = names(re.sub(r"\(.*?\)", "", cells("`nightly`, `results judge`")[1]))
    assert described == list(render.as_json("store", [], [], 0))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        *((code, [verdict]) for verdict, code in EXIT.items()),
        *((code, [verdict]) for verdict, code in NIGHT_EXIT.items()),
        (USAGE, ["command line"]),
        (EX_UNAVAILABLE, ["set-up"]),
        (FAILED, ["could not be done"]),
        (INTERRUPTED, ["Ctrl-C"]),
    ],
)
def test_an_exit_code_is_that_of_the_code(code, words):
    assert all(word in cells(str(code))[1] for word in words)
