"""docs/ducktape.md tells the truth: its counts, its fields and variables, its example."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from ducktests.options import Options
from testbed.argument_parser import Parser
from testbed.cli.commands import suite
from testbed.runner.ducktape_process import INTERRUPTED_S
from testbed.runner.time_limit import GRACE_S
from testbed.suites.suite import CASES_VARIABLE, LIMIT_S, PROFILE_VARIABLE, find_suite

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "ducktape.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("profile", ["ci", "release"])
def test_it_counts_the_cases(profile):
    [line] = [line for line in TEXT.splitlines() if line.startswith(f"| `{profile}` |")]
    assert f"({len(find_suite('kip73').cases(profile))})" in line


def test_it_names_every_field_and_variable():
    for name in (*(field.name for field in dataclasses.fields(Options)), PROFILE_VARIABLE, CASES_VARIABLE):
        assert f"`{name}`" in TEXT


def test_its_limits_are_those_of_the_code():
    assert (LIMIT_S, GRACE_S, INTERRUPTED_S) == (7 * 60, 2 * 60, 90)
    assert "most have 7 minutes in `smoke` and `ci`" in TEXT and "within two minutes" in TEXT and "in 90 s" in TEXT


def test_its_test_alone_is_there():
    [(path, test_class, method)] = re.findall(r"'([\w/.]+)::(\w+)\.(\w+)@", TEXT)
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    assert (ROOT / path).is_file()
    assert hasattr(getattr(module, test_class), method)


def test_its_commands_are_taken():
    parser = Parser("testbed suite")
    suite.configure(parser)
    lines = [line.split("#")[0].split() for line in TEXT.splitlines()]
    commands = [words[3:] for words in lines if words[:4] == ["./run", "testbed", "suite", "kip73"]]
    assert len(commands) == 3
    for words in commands:
        args = parser.parse_args(words)
        assert find_suite(args.suite).cases(args.profile, args.scenario)


def test_its_example_is_the_code_itself():
    example = TEXT.split("```python\n")[1].split("```")[0]
    code = (ROOT / "testbed/experiments/catalogue/kip73_stuck.py").read_text(encoding="utf-8")
    assert example.strip() in code
