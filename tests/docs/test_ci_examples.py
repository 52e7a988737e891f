"""The examples for CI: their form, and the shell of every step, run as the service would run it.

The night itself is replaced through `TESTBED_NIGHT`, a variable that each file declares. Another night that cannot be
run, or the judgement of a store, shows the way of each exit code.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from results.contract.archive import export_runs, import_runs
from results.contract.store import Store
from testbed.argument_parser import Parser
from testbed.cli.command import commands

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs" / "ci"
VARIABLES = ("TESTBED", "TESTBED_NIGHT", "STORE")
TESTBED = f"{sys.executable} -m testbed.cli.main"
CANNOT_RUN = "nightly --suite there-is-none"
JUDGES = "results judge"
BYTECODE = "PYTHONPYCACHEPREFIX"
"""The variable with which Python writes no bytecode next to its sources."""
USAGE = 64


def text(name):
    return (CI / name).read_text(encoding="utf-8")


def github():
    """Return the variables and the steps of the workflow, each with whether it runs always."""
    workflow = yaml.safe_load(text("github-actions.yml"))
    steps = workflow["jobs"]["night"]["steps"]
    return workflow["env"], [(step["run"], step.get("if") == "always()") for step in steps if "run" in step]


def gitlab():
    pipeline = yaml.safe_load(text("gitlab-ci.yml"))
    job = pipeline["night"]
    first = "\n".join([*job["before_script"], *job["script"]])
    return pipeline["variables"], [(first, False), ("\n".join(job["after_script"]), True)]


def jenkins():
    found = text("Jenkinsfile")
    declared = re.search(r"environment \{(.*?)\}", found, re.DOTALL)[1]
    variables = dict(re.findall(r"(\w+) = '([^']*)'", declared))
    stages, post = found.split("post {")
    steps = [(block, False) for block in re.findall(r"'''(.*?)'''", stages, re.DOTALL)]
    return variables, [*steps, *((block, True) for block in re.findall(r"'''(.*?)'''", post, re.DOTALL))]


def systemd():
    """Return the variables and commands of the service. systemd runs no shell itself: the command names it."""
    lines = [line.partition("=") for line in text("testbed-nightly.service").splitlines() if "=" in line]
    assigned = (shlex.split(value)[0].partition("=") for key, _, value in lines if key == "Environment")
    commands_of = [(value, key == "ExecStopPost") for key, _, value in lines if key.startswith("Exec")]
    return {name: value for name, _, value in assigned}, commands_of


FILES = {
    "github-actions.yml": github,
    "gitlab-ci.yml": gitlab,
    "Jenkinsfile": jenkins,
    "testbed-nightly.service": systemd,
}


@pytest.fixture(scope="session")
def small_store(tmp_path_factory):
    """A store with runs of one experiment, in one of which a criterion failed."""
    folder = tmp_path_factory.mktemp("ci")
    every, store = Store.open(folder / "every"), Store.open(folder / "store")
    import_runs(every, ROOT / "results" / "example" / "kafka-4.3.1.tar")
    manifests = [every.manifest(run_id) for run_id in every.runs()]
    some = [each for each in manifests if each.experiment == "kip73-two-node-produce"]
    assert {each.verdict for each in some} == {"pass", "fail"}
    export_runs(every, [each.run_id for each in some], folder / "some.tar")
    import_runs(store, folder / "some.tar")
    return folder / "store"


def performed(name, folder, night, store):
    """Run the steps of a file in `folder`, as its service does; return the first failure's code and all output."""
    variables, steps = FILES[name]()
    environment = {
        **os.environ,
        **variables,
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_DATA_HOME": str(folder / "data"),
        "TESTBED": TESTBED,
        "TESTBED_SETUP": "--version",
        "TESTBED_NIGHT": night,
        "STORE": str(store),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    environment.pop(BYTECODE, None)  # here, it is there already
    failed, said = 0, ""
    for script, always in steps:
        if failed and not always:
            continue
        words = shlex.split(script) if name.endswith(".service") else ["bash", "-e", "-o", "pipefail", "-c", script]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        failed, said = failed or done.returncode, said + done.stdout + done.stderr
    return failed, said


@pytest.mark.parametrize("name", FILES)
def test_a_file_declares_its_variables_and_uses_each(name):
    variables, steps = FILES[name]()
    assert set(VARIABLES) <= set(variables)
    for variable in variables.keys() - {"HOME", BYTECODE}:
        assert any(f"${variable}" in script for script, _ in steps), variable


@pytest.mark.parametrize("name", FILES)
def test_its_commands_are_words_that_the_commands_take(name):
    variables, _steps = FILES[name]()
    for line in (variables["TESTBED_NIGHT"], variables.get("TESTBED_SETUP", "doctor --fix")):
        command, *words = shlex.split(line)
        (found,) = [each for each in commands() if each.name == command]
        parser = Parser(command)
        found.configure(parser)
        more = ["--store", "s", "--junit", "j.xml", "--markdown"] if command == "nightly" else []
        parser.parse_args([*words, *more])


@pytest.mark.parametrize("name", FILES)
def test_the_page_of_a_night_is_in_the_folder_that_is_kept(name):
    """`--out` is in the variable, as the night that the tests put there has no such option."""
    variables, _steps = FILES[name]()
    words = shlex.split(variables["TESTBED_NIGHT"])
    assert words[words.index("--out") + 1] == "night"


@pytest.mark.parametrize("name", FILES)
def test_root_leaves_nothing_in_a_checkout_that_another_user_cleans(name):
    """`git clean` of a user without root's rights fails at a folder of root's, so the second night would not begin."""
    variables, _steps = FILES[name]()
    assert ("sudo" in variables["TESTBED"]) == (BYTECODE in variables)
    assert Path(variables.get(BYTECODE, "/")).is_absolute()


def test_yesterdays_reports_are_not_tonights():
    """GitHub and GitLab clean the checkout; a folder of Jenkins or systemd stays."""
    for name in ("Jenkinsfile", "testbed-nightly.service"):
        _variables, steps = FILES[name]()
        every = "\n".join(script for script, _ in steps)
        assert 0 <= every.index("rm -rf night") < every.index("mkdir -p night") < every.index("$TESTBED_NIGHT")


def suite_of(words):
    return words[words.index("--suite") + 1]


@pytest.mark.parametrize("name", FILES)
def test_it_runs_the_suite_whose_history_the_howto_begins(name):
    """Another suite's scenarios would be LEARNING for ten nights, and the history would not be used."""
    page = (ROOT / "docs" / "howto-nightly-ci.md").read_text(encoding="utf-8")
    (begin,) = re.findall(r"nightly .*--repeats.*", page)
    variables, _steps = FILES[name]()
    assert suite_of(shlex.split(variables["TESTBED_NIGHT"])) == suite_of(shlex.split(begin))


@pytest.mark.containers
@pytest.mark.parametrize("name", FILES)
def test_a_night_that_cannot_run_fails_and_is_cleaned_up(name, tmp_path):
    failed, said = performed(name, tmp_path, CANNOT_RUN, tmp_path / "store")
    assert failed == USAGE, said
    assert "there-is-none" in said
    if name == "github-actions.yml":
        assert "could not be run (exit code 64)" in said


@pytest.mark.containers
@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [name if name == "github-actions.yml" else pytest.param(name, marks=pytest.mark.nightly) for name in FILES],
)
def test_a_failed_night_fails_with_its_reports_kept(name, tmp_path, small_store):
    failed, said = performed(name, tmp_path, JUDGES, small_store)
    assert failed == 1, said
    assert "FAILED" in (tmp_path / "night" / "night.md").read_text()
    assert "<testsuite" in (tmp_path / "night" / "junit.xml").read_text()
    if name == "github-actions.yml":
        assert "::error" in said and "status=1" in (tmp_path / "output").read_text()
        assert "FAILED" in (tmp_path / "summary.md").read_text()


def checked(schema, name):
    checker = Path(sys.executable).with_name("check-jsonschema")
    words = [str(checker), "--builtin-schema", schema, str(CI / name)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("schema", "name"), [("vendor.github-workflows", "github-actions.yml"), ("vendor.gitlab-ci", "gitlab-ci.yml")]
)
def test_a_pipeline_follows_its_services_schema(schema, name):
    done = checked(schema, name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_units_are_valid(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in CI.glob("testbed-nightly.*"):
        # /opt/testbed is where a user has the checkout.
        (tmp_path / unit.name).write_text(unit.read_text())
    units = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_brackets_and_quotes_of_the_jenkinsfile_are_closed():
    """No parser of Groovy is a package of Python; this finds what a careless edit breaks."""
    code = re.sub(r"//[^\n]*|'''.*?'''|'[^'\n]*'|\"[^\"\n]*\"", "", text("Jenkinsfile"), flags=re.DOTALL)
    assert "'" not in code and '"' not in code
    open_brackets = []
    for character in code:
        if character in "({[":
            open_brackets.append(character)
        elif character in ")}]":
            assert open_brackets and open_brackets.pop() + character in ("()", "{}", "[]")
    assert open_brackets == []
