"""The messages of the troubleshooting page are messages of the product."""

import re
from pathlib import Path

import pytest

from results.criteria.criterion import CLUSTER_CHANGED
from results.criteria.judgement import catalogue

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
PRODUCT = (*(ROOT / "testbed").rglob("*.py"), *(ROOT / "results").rglob("*.py"), ROOT / "run")


def rows():
    """Yield heading and cells of every row of a table whose first column has messages."""
    head = ""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells or set(line) <= {"|", "-"}:
            continue
        if cells[0] == "message contains":
            head = "messages"
        elif not cells[0].startswith("`"):
            head = ""
        if head and cells[0] != "message contains":
            yield cells


@pytest.fixture(scope="module")
def texts():
    # A message may be continued on the next line of the code.
    return [re.sub(r'"\n\s*f?"', "", path.read_text(encoding="utf-8")) for path in PRODUCT]


MESSAGES = [message for cells in rows() for message in re.findall(r"`([^`]+)`", cells[0])]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_product_has_this_message(message, texts):
    assert any(message in text for text in texts)


def test_the_criteria_that_the_page_names_exist():
    named = {name for cells in rows() if len(cells) == 4 for name in re.findall(r"`([a-z0-9-]+)`", cells[1])}
    assert len(named) > 20
    assert named <= {*catalogue(), CLUSTER_CHANGED}, "and the finding of runs that other clients disturbed"
