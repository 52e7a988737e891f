"""Every example of the pages: commands that the program takes, names that exist, code that compiles, files that load.

What needs no cluster is run.
"""

import argparse
import ast
import importlib
import re
import shlex
import textwrap
from pathlib import Path

import pytest
import yaml

from testbed.argument_parser import Parser
from testbed.cli.command import commands
from testbed.cli.main import main
from testbed.cli.prompt.dialog import grammar
from testbed.cli.prompt.vocabulary import Vocabulary
from testbed.experiments.experiment import experiments
from testbed.faults import parse_fault
from testbed.faults.parse import split_faults
from testbed.incidents.read import ready_incidents
from testbed.runner.named_comparisons import named_comparisons
from testbed.topology.file_form import TopologyForm
from testbed.topology.find import find, loads, ready

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```([\w ]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
RUN_WORDS = {"demo", "test", "exec", "testbed"}
PLACEHOLDER = re.compile(r"[A-Z][A-Z_0-9]*|.*/.*|.*\.(yaml|yml|csv|json|tar|tgz)|\$.*|.*…")
"""A user's own name, or a file of theirs."""
OWN_NAMES = {"mine", "three-brokers-2"}
WITHOUT_A_CLUSTER = {
    ("plan",),
    ("experiments",),
    ("defects",),
    ("completion",),
    ("fault", "kinds"),
    ("replay", "--dry-run"),
    ("selftest", "--help"),
}


def blocks(language):
    """Yield the page, the line and the text of each fenced block of a language."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            if found[2].strip() == language:
                line = text.count("\n", 0, found.start()) + 2
                yield f"{page.relative_to(ROOT)}:{line}", textwrap.dedent(found[3])


def simple_commands(text):
    """Yield the words of each simple command of a shell's text: pipes, lists and substitutions are taken apart."""
    joined = re.sub(r"\\\n", " ", text)
    for line in joined.splitlines():
        words = shlex.shlex(re.sub(r'"\$\((.*?)\)"', r"; \1", line), posix=True, punctuation_chars="|&;<>")
        words.whitespace_split = True
        words.commenters = "#"
        command = []
        for word in words:
            if set(word) <= set("|&;"):
                yield from [command] if command else []
                command = []
            else:
                command.append(word)
        yield from [command] if command else []


def invocations():
    """Return the words after `testbed` of each command line in the pages, with its place."""
    found = []
    for place, text in blocks("sh"):
        for command in simple_commands(text):
            words = [word for word in command if not re.fullmatch(r"[A-Z_]+=.*", word)]
            if words[:1] == ["./run"]:
                assert words[1] in RUN_WORDS, f"{place}: ./run {words[1]}"
                words = words[1:]
            if words[:1] == ["testbed"]:
                cut = next((i for i, word in enumerate(words) if set(word) <= set("<>")), len(words))
                found.append((place, words[1:cut]))
    return found


INVOCATIONS = invocations()
IDS = [f"{place} {' '.join(words)}"[:100] for place, words in INVOCATIONS]


def parsed(words):
    name, *rest = words
    (command,) = [each for each in commands() if each.name == name]
    parser = Parser(f"testbed {name}")
    command.configure(parser)
    return parser.parse_args(rest)


def inline_options():
    """Return the words after `testbed` of each command with an option in a paragraph or a table, with its page."""
    found = []
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for line in re.findall(r"`(?:\./run )?testbed ([a-z][^`]*--[^`]*)`", text):
            words = line.replace("\\|", "|").split(" -- ")[0].split()
            found += [(page.name, words)] if any(word.startswith("--") for word in words) else []
    return found


@pytest.mark.parametrize(("page", "words"), inline_options(), ids=lambda value: " ".join(value)[:100])
def test_an_option_in_a_paragraph_is_one_of_its_command(page, words):
    (command,) = [each for each in commands() if each.name == words[0]]
    parser = Parser(f"testbed {command.name}")
    command.configure(parser)
    for word in words[1:]:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                parser = action.choices[word]
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert [each for each in options if each not in parser._option_string_actions] == [], page


def is_own(name):
    return name in OWN_NAMES or PLACEHOLDER.fullmatch(name) is not None


@pytest.mark.parametrize(("place", "words"), INVOCATIONS, ids=IDS)
def test_a_command_is_one_that_the_program_takes(place, words, capsys):
    if words[-1] in ("--help", "--version"):
        words = words[:1]
        assert words[0] in {each.name for each in commands()}
        return
    try:
        args = parsed(words)
    except SystemExit:
        pytest.fail(f"{place}: testbed {' '.join(words)}\n{capsys.readouterr().err}")
    for option, known in (
        ("topology", ready()),
        ("experiment", {**experiments(), **named_comparisons()}),
        ("incident", ready_incidents()),
    ):
        given = getattr(args, option, None)
        if isinstance(given, str) and not is_own(given):
            assert given in known or (ROOT / given).exists(), f"{place}: no {option} {given!r}"
    experiment = getattr(args, "experiment", None)
    if experiment in experiments():
        parameters = {each.name for each in experiments()[experiment].parameters}
        for setting in getattr(args, "set", None) or getattr(args, "settings", None) or []:
            assert setting.partition("=")[0] in parameters, f"{place}: {experiment} has no parameter {setting}"
    if words[:2] == ["fault", "add"]:
        for text in split_faults(args.fault):
            parse_fault(text).check(find("three-brokers"))


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (place, words)
        for place, words in INVOCATIONS
        if any(set(each[:1]) == set(words[:1]) and set(each) <= set(words) for each in WITHOUT_A_CLUSTER)
        and not any(PLACEHOLDER.fullmatch(word) and not (ROOT / word).exists() for word in words[1:])
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_needs_no_cluster_runs(place, words, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    try:
        status = main(words)
    except SystemExit as ended:
        status = ended.code
    assert status == 0, f"{place}: {capsys.readouterr().err}"
    assert capsys.readouterr().out


PYTHON = list(blocks("python"))
OTHER_TOOLS = {"duckdb"}
"""Programs of the user that read a store; the project does not install them."""


@pytest.mark.parametrize(("place", "text"), PYTHON, ids=[place for place, _ in PYTHON])
def test_code_compiles_and_what_it_imports_exists(place, text):
    for node in ast.walk(ast.parse(text, place)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in OTHER_TOOLS:
                    importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


def test_the_example_of_a_series_runs(capsys):
    (text,) = [text for place, text in PYTHON if place.startswith("docs/series.md")]
    exec(compile(text, "docs/series.md", "exec"), {})
    assert capsys.readouterr().out.startswith("11 10 0.095")


YAML = list(blocks("yaml"))
TOPOLOGY = set(TopologyForm.model_fields)
WHOLE = {
    "name": "example",
    "kafka": {"version": "4.3.1"},
    "defaults": {"nic": {"rate": "400mbit"}},
    "hosts": {"b1": {"role": "both"}, "s1": {"role": "objectstore"}},
}
"""What a part of a topology lacks."""


@pytest.mark.parametrize(("place", "text"), YAML, ids=[place for place, _ in YAML])
def test_a_file_follows_its_form(place, text, monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_AUTOMQ", str(tmp_path))
    values = yaml.safe_load(text)
    assert isinstance(values, dict), place
    if set(values) <= TOPOLOGY:
        whole = {**WHOLE, **values} if "hosts" in values else {**WHOLE, **values, "hosts": WHOLE["hosts"]}
        if "software" in values:
            del whole["kafka"]
        loads(yaml.safe_dump(whole) if set(whole) != set(values) else text, place)
    elif "timeline" in values or "summary" in values:
        from testbed.incidents.read import loads as loads_incident

        loads_incident(text, place)
    else:  # a service's own file: its commands are the program's
        lines = [line for job in values.values() for line in job.get("script", [])]
        assert lines, f"{place}: neither a topology, an incident nor a job"
        for command in simple_commands("\n".join(lines)):
            assert command[:2] == ["./run", "testbed"], place
            parsed(command[2 : next((i for i, word in enumerate(command) if word == ">"), None)])


def prompt_lines():
    """Return the lines of the prompt in docs/shell.md: of the dialog, and of the table of commands."""
    text = (ROOT / "docs" / "shell.md").read_text(encoding="utf-8")
    typed = re.findall(r"^three-brokers> (.*)$", text, re.MULTILINE)
    table = text.partition("## Commands")[2].partition("A broker has")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return typed + [re.sub(r"[][]", "", line) for cell in cells for line in re.findall(r"`([^`]*)`", cell)]


@pytest.mark.parametrize("line", prompt_lines())
def test_a_line_of_the_prompt_is_a_command(line):
    commands_of_prompt = grammar()
    topics = () if line.startswith("create") else ("orders",)
    names = Vocabulary.of(find("three-brokers"), lambda: topics, lambda: (3,), commands_of_prompt.names)
    found = commands_of_prompt.parse(line, names)
    settings = found.values.get(found.command.name)
    if "subject" in found.values and found.command.name not in ("run", "shell", "log") and settings != "declared":
        assert found.command.rest is not None
    if found.command.name == "nic-rate":
        parse_fault(line)


def test_the_pages_have_examples():
    assert len(INVOCATIONS) > 100 and len(PYTHON) > 15 and len(YAML) > 10 and len(prompt_lines()) > 30


def test_the_complete_files_of_extending_are_those_of_the_code():
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    criterion, experiment = "leaders_as_planned", "kip73_fetch_size"
    for path in (f"results/criteria/catalogue/{criterion}.py", f"testbed/experiments/catalogue/{experiment}.py"):
        assert f"```python\n{(ROOT / path).read_text(encoding='utf-8')}```" in page, (
            f"copy {path} into docs/extending.md"
        )
