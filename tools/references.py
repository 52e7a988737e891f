"""Write the reference pages from the code: `./run exec python -m tools.references`; `--check` only compares."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from results.criteria.judgement import catalogue
from testbed.argument_parser import Parser
from testbed.cli.command import Command, commands
from testbed.experiments.experiment import Experiment, experiments
from testbed.runner.named_comparisons import named_comparisons

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
WRITTEN = "<!-- Written by `./run exec python -m tools.references`; edit the code, not this page. -->"


def escaped(text: str) -> str:
    """Return the text as a table's cell."""
    return text.replace("%%", "%").replace("|", "\\|").replace("\n", " ")


def sentence(text: str) -> str:
    """Return a summary as a sentence. A name at its begin stays as it is."""
    first = text.partition(" ")[0]
    return f"{text if '-' in first else text[:1].upper() + text[1:]}."


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    """Return a Markdown table, or nothing when it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines, ""] if lines else []


def parser_of(command: Command) -> Parser:
    """Return the argument parser of a command."""
    parser = Parser(f"testbed {command.name}", command.help)
    command.configure(parser)
    return parser


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            help_of = {choice.dest: choice.help or "" for choice in action._choices_actions}
            yield from ((name, help_of.get(name, ""), each) for name, each in action.choices.items())


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, ...]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction) or action.help == argparse.SUPPRESS:
            continue
        metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        if action.choices:
            metavar = "\\|".join(str(choice) for choice in action.choices)
        words = ", ".join(action.option_strings)
        value = "" if action.nargs == 0 else metavar
        name = f"`{f'{words} {value}'.strip()}`" if words else f"`{metavar}`"
        yield name, escaped(action.help or "")


def _command(parser: argparse.ArgumentParser, summary: str, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {parser.prog}", "", sentence(escaped(summary)), "")
    yield from table(("argument", "meaning"), _options(parser))
    if parser.epilog:
        yield from (parser.epilog.replace("\n", " "), "")
    for _name, text, each in _subparsers(parser):
        yield from _command(each, text, level + 1)


def command_page() -> str:
    """Return the page of all commands and their options."""
    lines = ["# Commands", "", WRITTEN, ""]
    for command in sorted(commands(), key=lambda each: each.name):
        lines += _command(parser_of(command), command.help, 2)
    return "\n".join(lines).rstrip() + "\n"


def _experiment(experiment: Experiment) -> Iterator[str]:
    yield from (f"## {experiment.name}", "", sentence(escaped(experiment.summary)), "")
    yield from (f"Topology: [{experiment.topology}](../../topologies/{experiment.topology}.yaml).", "")
    rows = ((f"`{p.name}`", f"`{p.default}`" if p.default else "", escaped(p.help)) for p in experiment.parameters)
    yield from table(("parameter", "default", "meaning"), rows)
    for profile, settings in experiment.profiles.items():
        values = ", ".join(f"`{name}={value}`" for name, value in settings.items())
        yield from (f"Profile `{profile}` sets {values}.", "")


def experiment_page() -> str:
    """Return the page of all experiments, their parameters, and the comparisons by name."""
    lines = ["# Experiments", "", WRITTEN, "", "Run one with `testbed run NAME --set PARAMETER=VALUE`.", ""]
    for _name, experiment in sorted(experiments().items()):
        lines += _experiment(experiment)
    lines += ["# Comparisons", "", "`testbed run NAME` runs every variant of a comparison, interleaved.", ""]
    rows = (
        (f"`{each.name}`", escaped(each.summary), f"`{each.experiment}`", escaped(", ".join(each.axes)))
        for each in named_comparisons().values()
    )
    lines += table(("comparison", "question", "experiment", "axes"), rows)
    return "\n".join(lines).rstrip() + "\n"


def criterion_page() -> str:
    """Return the page of all criteria, by section of the report."""
    lines = ["# Criteria", "", WRITTEN, "", "[How a run is judged](../criteria.md) explains them.", ""]
    known = sorted(catalogue().values(), key=lambda each: each.name)
    for section in dict.fromkeys(each.section for each in known):
        lines += [f"## {section}", ""]
        rows = (
            (
                f"`{each.name}`",
                escaped(each.title),
                escaped(each.catches),
                escaped(each.smallest),
                "experiments" if each.by_name else "all",
            )
            for each in known
            if each.section == section
        )
        lines += table(("criterion", "in the report", "finds", "the smallest", "judged in"), rows)
    move = "*The smallest*: what one run finds; of a throttled move, `kip73-two-node` with tuned fetches at 10 MB/s."
    lines += [move, "Each finding that passed states its own: `power` in `testbed run --json`.", ""]
    lines += ["*Judged in experiments*: where the experiment names it. *All*: in every run that has what it needs."]
    return "\n".join(lines).rstrip() + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "commands.md": command_page,
    "criteria.md": criterion_page,
    "experiments.md": experiment_page,
}


def outdated() -> list[str]:
    """Return the names of the pages that differ from what the code says."""
    files = {name: FOLDER / name for name in PAGES}
    return [n for n, file in files.items() if not file.exists() or file.read_text(encoding="utf-8") != PAGES[n]()]


def main() -> int:
    """Write the pages, or compare them; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a page is out of date")
    if parser.parse_args().check:
        names = outdated()
        for name in names:
            print(f"docs/reference/{name} is out of date: run `./run exec python -m tools.references`")
        return bool(names)
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
