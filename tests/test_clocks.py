"""A wall clock that is set meanwhile prolongs no wait and changes no duration: those use the monotonic clock."""

import ast
import time
from pathlib import Path

import pytest

from results.contract.untrusted import read_text
from testbed.kafka.types import TopicPartition
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.throttle.journal import JournalFolder
from testbed.wait import WaitTimeout, wait_for
from tests.fakes.admin import FakeAdmin

ROOT = Path(__file__).parents[1]
WALL = {
    "testbed/faults/catalogue/client_stampede.py": "an end that another process may have to know; bounded by `lasts`",
    "testbed/faults/programs/stampede.py": "the same end, and the monotonic clock",
    "testbed/setup/environment.py": "the ages of files",
    "testbed/software/engine.py": "the times of files in an archive",
}
"""The modules that call `time.time`, and why."""


def test_only_these_modules_ask_for_the_wall_clock_in_seconds():
    found = set()
    for path in [*(ROOT / "testbed").rglob("*.py"), *(ROOT / "results").rglob("*.py")]:
        for node in ast.walk(ast.parse(read_text(path))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.time":
                found.add(str(path.relative_to(ROOT)))
    assert found == set(WALL)


@pytest.fixture(params=[-86_400, 86_400], ids=["a day back", "a day on"])
def stepped(request, monkeypatch):
    """Every second look at the wall clock finds it set by a day."""
    real, real_ns, looks = time.time, time.time_ns, iter(range(10**9))

    def offset():
        return request.param if next(looks) % 2 else 0

    monkeypatch.setattr(time, "time", lambda: real() + offset())
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + offset() * 10**9)


def test_a_wait_lasts_as_long_as_it_should(stepped):
    begun = time.monotonic()
    with pytest.raises(WaitTimeout):
        wait_for(lambda: 0, lambda _seen: False, 0.2, 0.01, "nothing")
    assert 0.2 <= time.monotonic() - begun < 2
    assert wait_for(lambda: 1, lambda _seen: True, 5, 0.01, "something") == 1


def test_a_move_has_its_duration_and_leaves_no_throttle(stepped, tmp_path):
    admin = FakeAdmin({TopicPartition("t", p): (1,) for p in range(3)})
    journals = JournalFolder(tmp_path)
    with Driver(admin, journals) as driver:
        driver.execute(Plan({TopicPartition("t", p): (2,) for p in range(3)}), 10**6)
        seconds = driver.follow(timeout_s=10, interval_s=0.001)
    assert 0 < seconds < 10
    assert journals.ids() == []
    assert admin.configs.get("broker", {}) == {}
