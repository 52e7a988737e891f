import re
import uuid
from pathlib import Path

import pytest

from testbed.software import format as formatting
from testbed.software.commands import CommandError
from testbed.software.format import encode_id, meta_properties, new_id, run_format
from testbed.software.release import KafkaRelease, Logging


def test_ids_are_written_as_kafka_writes_them() -> None:
    assert encode_id(uuid.UUID(int=0)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", new_id()) for _ in range(200))


def test_meta_properties_names_cluster_node_and_directory() -> None:
    assert meta_properties("C", 3, "D") == "version=1\ncluster.id=C\nnode.id=3\ndirectory.id=D\n"


def test_without_java_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "find_java", lambda: None)
    release = KafkaRelease("4.3.1", Path("/none"), (), "digest", Logging.LOG4J2)
    with pytest.raises(CommandError, match=r"no Java 17 or newer: .*apt-get install .*openjdk-17-jre-headless"):
        run_format(release, new_id(), 1)
