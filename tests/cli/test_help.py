"""The help of all commands has one form: the same word for the same value, examples that are taken, exit codes last."""

import argparse
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest

from testbed.argument_parser import Parser
from testbed.cli.command import commands
from tools.references import parser_of

OTHER_VALUES = {
    "--kafka": {"CANDIDATE", "VERSION,…"},
    "--set": {"NAME=VALUE,…"},
    "--out": {"FILE"},
    "--resume": {"DIR"},
    "--scenario": {"SUITE/NAME"},
}
"""Options whose value is another one in some commands: a list, a file instead of a folder, or another thing."""
UNCLEAR = ("may be repeated", "go on with", "look to look", "so often", "so long", "put back", "mend", "series of runs")


def parsers(parser):
    """Yield a parser and those of its actions."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


ALL = [each for command in commands() for each in parsers(parser_of(command))]


def arguments(parser):
    """Return the arguments of a parser, without `--help`, subcommands, and earlier names of options."""
    left_out = argparse._HelpAction | argparse._SubParsersAction
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return [action for action in shown if not isinstance(action, left_out)]


@pytest.mark.parametrize("parser", ALL, ids=lambda each: each.prog)
def test_every_argument_is_explained_in_one_form(parser):
    for action in arguments(parser):
        text = action.help or ""
        assert len(text) > 8 and not text.endswith("."), action.dest
        assert [word for word in UNCLEAR if word in text] == [], text
        assert not re.search(r"\(default [^:]|(?<!such )\bas \d|\(\d+\w*\)$", text), text


def test_an_option_has_one_word_for_its_value():
    words = defaultdict(set)
    for parser in ALL:
        for action in arguments(parser):
            for option in action.option_strings:
                if action.nargs != 0 and action.choices is None:
                    words[option].add(action.metavar or action.dest.upper())
    differing = {name: found - OTHER_VALUES.get(name, set()) for name, found in words.items()}
    assert {name: found for name, found in differing.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("line", "option", "earlier", "value"),
    [
        ("throttle estimate --bootstrap b:9092 --plan p --rate 1MB/s {} 3s", "--measure-for", "--measure", "3s"),
        ("capture seen --bootstrap b:9092 {} 3s", "--measure-for", "--measure", "3s"),
        ("kafkatest checkout {} 3", "--host-count", "--hosts", 3),
        ("kafkatest checkout {} 3", "--repeats", "--repeat", 3),
        ("replay move-before-quota {} 3", "--repeats", "--repeat", 3),
        ("results export run {} run.tar", "--out", "--to", Path("run.tar")),
        ("suite kip73 {0} two-node {0} stuck", "--scenario", "--only", ["two-node", "stuck"]),
        ("nightly {0} move {0} add", "--scenario", "--case", ["move", "add"]),
        ("selftest {0} move {0} add", "--scenario", "--case", ["move", "add"]),
    ],
)
def test_an_option_that_got_another_name_has_its_earlier_one_still(line, option, earlier, value):
    name, *words = line.split()
    (command,) = [each for each in commands() if each.name == name]
    dest = option.removeprefix("--").replace("-", "_")
    for given in (option, earlier):
        args = parser_of(command).parse_args([word.format(given) for word in words])
        assert getattr(args, dest) == value


def test_an_option_and_its_earlier_name_in_one_line_name_both_scenarios():
    (suite,) = [command for command in commands() if command.name == "suite"]
    args = parser_of(suite).parse_args(["kip73", "--only", "two-node", "--scenario", "stuck"])
    assert args.scenario == ["two-node", "stuck"]


def test_what_an_option_is_called_now_is_all_that_help_shows(capsys):
    (results,) = [command for command in commands() if command.name == "results"]
    with pytest.raises(SystemExit):
        parser_of(results).parse_args(["export"])
    said = capsys.readouterr().err
    assert "--out" in said and "--to" not in said


EXAMPLES = [found for each in ALL for found in re.findall(r"Example: `(testbed [^`]*)`\.", each.epilog or "")]


def test_there_are_examples():
    assert len(EXAMPLES) > 15


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_taken(line):
    _program, name, *words = shlex.split(line)
    (command,) = [each for each in commands() if each.name == name]
    parser = Parser(f"testbed {name}")
    command.configure(parser)
    parser.parse_args(words)


@pytest.mark.parametrize("parser", [each for each in ALL if each.epilog], ids=lambda each: each.prog)
def test_what_follows_the_arguments_is_sentences(parser):
    assert parser.epilog[0].isupper() or parser.epilog[0] == "`"
    assert parser.epilog.endswith(".")
    assert "exit code" not in parser.epilog
