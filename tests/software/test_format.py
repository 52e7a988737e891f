import base64
import re
import uuid
from pathlib import Path

import pytest

from testbed.errors import SoftwareError
from testbed.software import format as formatting
from testbed.software.commands import CommandError
from testbed.software.format import encode_id, feature_levels, lowest, meta_properties, new_id, run_format
from testbed.software.release import KafkaRelease, Logging


def test_ids_are_written_as_kafka_writes_them() -> None:
    assert encode_id(uuid.UUID(int=0)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", new_id()) for _ in range(200))


def test_meta_properties_names_cluster_node_and_directory() -> None:
    assert meta_properties("C", 3, "D") == "version=1\ncluster.id=C\nnode.id=3\ndirectory.id=D\n"


def test_without_java_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "find_java", lambda: None)
    release = KafkaRelease("4.3.1", Path("/none"), (), "digest", Logging.LOG4J2)
    with pytest.raises(CommandError, match=r"no Java 17 or newer: .*apt-get install .*openjdk-17-jre-headless"):
        run_format(release, 1, tmp_path)


# What `kafka-storage format` of these releases wrote.
OLDER = base64.b64decode(
    "AAAAAAAAAAAAAABHAAAAAAJ1H9Y2ACAAAAAAAAABof+h8gwAAAGh/6HyDP//////////////////AAAAASoAAAAIAAAAAxYAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAQAAAE8AAAAAAkb1NNIAAAAAAAAAAAGh/6HyIQAAAaH/ofIh//////////////////8AAAABOgAAAAEu"
    "AQwAEW1ldGFkYXRhLnZlcnNpb24AFQAAAAAAAAAAAAIAAAA/AAAAAAIRTUllACAAAAAAAAABof+h8iEAAAGh/6HyIf//////////"
    "////////AAAAARoAAAAIAAAABAYAAAAA"
)
NEWER = base64.b64decode(
    "AAAAAAAAAAAAAABHAAAAAAIOBgCyACAAAAAAAAABof9kEEUAAAGh/2QQRf//////////////////AAAAASoAAAAIAAAAAxYAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAQAAAPEAAAAAAmQS5+kAAAAAAAUAAAGh/2QQXQAAAaH/ZBBd//////////////////8AAAAGOgAAAAEu"
    "AQwAEW1ldGFkYXRhLnZlcnNpb24AHgAAWgAAAgFOAQwAIWVsaWdpYmxlLmxlYWRlci5yZXBsaWNhcy52ZXJzaW9uAAEAADQAAAQB"
    "KAEMAA5ncm91cC52ZXJzaW9uAAEAADQAAAYBKAEMAA5zaGFyZS52ZXJzaW9uAAEAADgAAAgBLAEMABBzdHJlYW1zLnZlcnNpb24A"
    "AQAAQAAACgE0AQwAFHRyYW5zYWN0aW9uLnZlcnNpb24AAgAAAAAAAAAAAAcAAAA/AAAAAAKkV65VACAAAAAAAAABof9kEF4AAAGh"
    "/2QQXv//////////////////AAAAARoAAAAIAAAABAYAAAAA"
)
LEVELS_3_9_2 = {"metadata.version": 21}
LEVELS_4_3_1 = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def test_a_checkpoint_tells_the_levels_a_cluster_starts_with() -> None:
    assert feature_levels(OLDER) == LEVELS_3_9_2
    assert feature_levels(NEWER) == LEVELS_4_3_1


@pytest.mark.parametrize("content", [b"", b"no such file", OLDER[:-1], NEWER[: len(NEWER) // 2], NEWER[1:]])
def test_what_is_no_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises(SoftwareError, match=r"not a bootstrap\.checkpoint"):
        feature_levels(content)


def test_a_cluster_starts_with_what_all_of_its_releases_have() -> None:
    assert lowest({"4.3.1": LEVELS_4_3_1, "3.9.2": LEVELS_3_9_2}) == "3.9.2"
    assert lowest({"4.3.1": LEVELS_4_3_1}) == "4.3.1"


def test_among_releases_with_the_same_levels_the_answer_is_always_the_same() -> None:
    assert lowest({"4.3.1+b": LEVELS_4_3_1, "4.3.1+a": LEVELS_4_3_1}) == "4.3.1+a"


def test_branches_that_each_lack_a_feature_of_the_other_cannot_be_one_cluster() -> None:
    one, other = {"metadata.version": 30, "x.version": 1}, {"metadata.version": 31}
    with pytest.raises(SoftwareError) as caught:
        lowest({"one": one, "other": other})
    assert "one: metadata.version=30, x.version=1; other: metadata.version=31" in str(caught.value)


def test_a_lower_metadata_version_does_not_make_up_for_another_feature() -> None:
    low, middle = {"metadata.version": 20}, {"metadata.version": 21, "x.version": 1}
    assert lowest({"middle": middle, "low": low, "high": {"metadata.version": 30} | middle}) == "low"
