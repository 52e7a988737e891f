"""A name says what a thing is, and stands for one thing: modules and classes, over the whole product."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("testbed", "results", "ducktests")
EMPTY_WORDS = frozenset(
    """
    told tells kept meant chosen look looks looked seen unseen ground grounds words beside never handed during noted had
    moved thing things stuff misc helper helpers util utils common scene stepping found said wanted ended watched house
    room door heap anew dying comparing
    """.split()  # noqa: SIM905 - a list of words
)
"""Words that say nothing about a module or a class: participles, pronouns, metaphors and containers for anything."""
MOST_LINES = 500


def modules():
    return [path.relative_to(ROOT) for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py"))]


def classes():
    """Yield the name and the module of every class that other modules may use."""
    for path in modules():
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path


def words(name):
    """Return the words of a name in snake case or camel case."""
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", part)]


def test_no_module_has_a_name_that_says_nothing():
    assert [str(p) for p in modules() if EMPTY_WORDS & set(words(p.stem)) or p.stem == "left_out"] == []


def test_no_module_is_the_plural_of_another_in_its_folder():
    found = set(modules())
    assert [str(path) for path in found if path.with_name(f"{path.stem}s.py") in found] == []


def test_no_class_has_a_name_that_says_nothing():
    assert [f"{path}: {name}" for name, path in classes() if EMPTY_WORDS & set(words(name))] == []


def test_a_class_name_stands_for_one_thing():
    places = defaultdict(list)
    for name, path in classes():
        places[name].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_module_is_longer_than_one_can_read():
    lines = {str(path): (ROOT / path).read_text(encoding="utf-8").count("\n") for path in modules()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize(
    ("name", "parts"), [("left_out", ["left", "out"]), ("NicRate", ["nic", "rate"]), ("ISRShrink", ["isr", "shrink"])]
)
def test_names_are_taken_apart_into_words(name, parts):
    assert words(name) == parts
