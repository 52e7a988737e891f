"""The glossary: each name in its column *in the code* is a name in the code, and no term has two rows."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| term |")
]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[2])})


@pytest.fixture(scope="module")
def code():
    """Return the text of all modules, with their paths."""
    modules = [path for folder in ("testbed", "results", "ducktests") for path in (ROOT / folder).rglob("*.py")]
    return "\n".join(f"{path.relative_to(ROOT)}\n{path.read_text(encoding='utf-8')}" for path in modules)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_in_the_code(name, code):
    assert all(re.search(rf"\b{re.escape(part)}\b", code) for part in name.split("."))


def test_a_term_has_one_row():
    terms = [row[0] for row in ROWS]
    assert sorted(set(terms)) == sorted(terms)
    assert all(len(row) == 3 for row in ROWS) and len(ROWS) > 80
