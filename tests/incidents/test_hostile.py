"""Whatever stands in a file, the answer is an incident or a list of mistakes, never anything else."""

import copy

import pytest
import yaml

from testbed.incidents.read import loads
from testbed.yaml_document import FormError
from tests.incidents.files import SMALL

JUNK = (None, True, -1, 3.5, "x", "é\u2028", [], [[None]], {"a": 1})


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(document, path, value):
    found = copy.deepcopy(document)
    if not path:
        return value
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


DOCUMENT = yaml.safe_load(SMALL)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""In C, where PyYAML has it: many times as fast."""


@pytest.mark.parametrize("junk", JUNK, ids=[repr(junk) for junk in JUNK])
def test_junk_in_any_place(junk):
    for path in places(DOCUMENT):
        text = yaml.dump(changed(DOCUMENT, path, junk), Dumper=DUMPER, allow_unicode=True)
        try:
            loads(text, "x.yaml")
        except FormError as error:
            assert error.problems
            assert all(problem.line is not None for problem in error.problems), (path, str(error))


def test_any_part_left_out():
    for path in places(DOCUMENT):
        if not path:
            continue
        found = copy.deepcopy(DOCUMENT)
        at = found
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        try:
            loads(yaml.dump(found, Dumper=DUMPER), "x.yaml")
        except FormError as error:
            assert error.problems
