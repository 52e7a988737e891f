import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `fakes`

from fakes.admin import FakeAdmin

from testbed.kafka.types import TopicPartition
from testbed.throttle.journal import JournalFolder
from tests.reassignment.throttled_cluster import WithDefault, throttled_cluster


@pytest.fixture
def journals(tmp_path: Path) -> JournalFolder:
    return JournalFolder(tmp_path / "reassign")


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin({TopicPartition("t", p): (1,) for p in range(3)} | {TopicPartition("control", 0): (1,)})


@pytest.fixture
def throttled() -> WithDefault:
    return throttled_cluster()
