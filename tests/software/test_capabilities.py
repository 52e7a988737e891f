import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.kafka import capabilities
from testbed.kafka.capabilities import (
    DETECTED,
    ON_DISK,
    Capability,
    LacksCapability,
    of_cluster,
    of_release,
    require,
)
from testbed.software.release import KafkaRelease, Logging

EVERYTHING = {"group.version": 1, "share.version": 1, "streams.version": 1, "transaction.version": 2} | {
    "eligible.leader.replicas.version": 1,
    "metadata.version": 30,
}


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[KafkaRelease, KafkaRelease]:
    """An older and a newer one: what their jars and their format tools show."""
    made = []
    for version, logging in (("3.9.2", Logging.RELOAD4J), ("4.3.1", Logging.LOG4J2)):
        folder = tmp_path / version
        (folder / "libs").mkdir(parents=True)
        jar = f"kafka-server-common-{version}.jar"
        with zipfile.ZipFile(folder / "libs" / jar, "w") as archive:
            archive.writestr("org/apache/kafka/server/common/KRaftVersion.class", b"")
        made.append(KafkaRelease(version, folder, (jar,), version, logging))
    levels = {"3.9.2": {"metadata.version": 21}, "4.3.1": EVERYTHING}
    monkeypatch.setattr(capabilities, "levels_of", lambda release: levels[release.version])
    return made[0], made[1]


def test_every_capability_is_detected_somehow() -> None:
    assert set(DETECTED) == set(Capability)


def test_a_release_has_what_its_jars_and_its_format_tool_show(releases: tuple[KafkaRelease, KafkaRelease]) -> None:
    older, newer = releases
    assert of_release(older) == {Capability.DYNAMIC_QUORUM, *ON_DISK}
    assert of_release(newer) == set(Capability) - {Capability.SHARED_STORAGE}


def test_partitions_in_a_shared_store_are_known_by_the_jar_that_puts_them_there(
    releases: tuple[KafkaRelease, KafkaRelease], monkeypatch: pytest.MonkeyPatch
) -> None:
    older, _newer = releases
    shared = replace(older, jars=(*older.jars, "s3stream-3.9.0.jar"))
    # The real one, which does not run a format tool: what its folders are formatted at is its own affair.
    monkeypatch.undo()
    assert of_release(shared) == {Capability.SHARED_STORAGE, Capability.DYNAMIC_QUORUM}
    with pytest.raises(LacksCapability, match="a throttled move is not possible with AutoMQ, which lacks throttles-r"):
        require([Capability.THROTTLES_REPLICATION], of_release(shared), "a throttled move", "AutoMQ")


def test_a_cluster_has_what_its_nodes_have_and_its_features_allow(releases: tuple[KafkaRelease, KafkaRelease]) -> None:
    older, newer = releases
    assert Capability.SHARE_GROUPS in of_cluster([newer, newer], EVERYTHING)
    assert Capability.SHARE_GROUPS not in of_cluster([newer], {"metadata.version": 21})
    assert of_cluster([older, newer], {"metadata.version": 21, "kraft.version": 1}) == {
        Capability.DYNAMIC_QUORUM,
        *ON_DISK,
    }
    # With voters declared once and for all the level is 0, whatever the release.
    assert Capability.DYNAMIC_QUORUM not in of_cluster([newer], EVERYTHING | {"kraft.version": 0})


def test_what_lacks_is_named_with_how_it_would_be_seen() -> None:
    require([Capability.LOG4J2], frozenset(Capability), "this", "Kafka 4.3.1")
    with pytest.raises(LacksCapability) as caught:
        require([Capability.SHARE_GROUPS], frozenset(), "a share consumer", "Kafka 3.9.2")
    assert caught.value.missing == {Capability.SHARE_GROUPS}
    assert str(caught.value) == (
        "a share consumer is not possible with Kafka 3.9.2, which lacks share-groups "
        "(seen when `kafka-storage format` of the release finalizes share.version at 1 or above)"
    )
