"""docs/faults.md tells the truth: every kind and parameter, and the example is the code itself."""

import re
from dataclasses import MISSING
from pathlib import Path

from testbed.faults import kinds
from testbed.faults.parse import parameters

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")


def test_it_names_every_kind_and_its_parameters():
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| ([^|]*) \|", TEXT, re.MULTILINE))
    assert sorted(rows) == sorted(kinds())
    for name, kind in kinds().items():
        words = [
            f"`{each.name}`" if each.default is MISSING else f"`[{each.name}={each.metadata['show'](each.default)}]`"
            for each in parameters(kind)
        ]
        assert rows[name] == (" ".join(words) or "–")


def test_its_example_is_the_code():
    _use, example = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert example == (ROOT / "testbed" / "faults" / "catalogue" / "broker_pause.py").read_text(encoding="utf-8")
    assert len(example.splitlines()) <= 42
