"""The index of the architecture page: each name is in the file that it gives."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
INDEX = PAGE[PAGE.index("## Where to change it") : PAGE.index("## Decisions that are not obvious")]
ROWS = re.findall(r"^\| .* \| `([^`]+)` \| `([^`]+)` \|$", INDEX, re.MULTILINE)


@pytest.mark.parametrize(("file", "name"), ROWS)
def test_a_name_is_in_its_file(file, name):
    assert name in (ROOT / file).read_text(encoding="utf-8")


def test_every_row_was_read():
    assert len(ROWS) == INDEX.count("\n| ") - 1 > 20
