"""The release of a replay is that of the captured cluster: by its brokers' features, or by their logs."""

import pytest

from testbed.cli.main import main
from testbed.incidents.broker_logs import LogReport
from testbed.incidents.capture import capture
from testbed.incidents.captured_file import INCIDENT
from testbed.incidents.captured_release import LINE_OF_LEVEL, replayed_release
from testbed.incidents.evidence_text import EvidenceText
from testbed.incidents.read import load
from testbed.incidents.scale_down import scale_down
from testbed.kafka.errors import KafkaError
from testbed.kafka.types import TopicPartition
from testbed.software.kafka import DEFAULT_KAFKA
from testbed.software.release import known_digests
from tests.fakes.admin import FakeAdmin

KNOWN = ("3.9.1", "3.9.2", "4.0.0", "4.1.1", "4.3.1")
TOPICS = (
    "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 2,1\tIsr: 1\tAdding Replicas: 2\tRemoving Replicas: 1\n"
)
STARTS = "[2026-01-31 12:00:00,123] INFO Kafka version: {} (org.apache.kafka.common.utils.AppInfoParser)\n"


@pytest.mark.parametrize(
    ("releases", "chosen", "noted"),
    [
        (["4.1.1"], "4.1.1", False),
        (["4.1.7"], "4.1.7", False),
        (["3.9"], "3.9.2", True),
        (["3.9.1", "4.1.1"], "4.1.1", True),
        (["3.9.9", "3.9.10"], "3.9.10", True),
        (["3.6"], DEFAULT_KAFKA, True),
        (["2.8.2"], DEFAULT_KAFKA, True),
        (["a build of 7.5.0"], DEFAULT_KAFKA, True),
        ([], DEFAULT_KAFKA, True),
    ],
)
def test_the_release_of_the_replay(releases, chosen, noted):
    found, note = replayed_release(releases, KNOWN)
    assert found == chosen and (note is not None) is noted
    assert note is None or (chosen in note and all(each in note for each in releases))


def test_each_known_release_has_its_level():
    lines = {release.rpartition(".")[0] for release in known_digests()}
    assert lines <= {*LINE_OF_LEVEL.values()}


@pytest.mark.parametrize(("level", "releases"), [(21, ("3.9",)), (30, ("4.3",)), (99, ()), (None, ())])
def test_a_live_cluster_tells_its_release_by_what_its_brokers_know(level, releases):
    admin = FakeAdmin({TopicPartition("orders", 0): (1, 2)})
    admin.supported = {} if level is None else {"metadata.version": level}
    found = capture(admin, measure_s=0.01)
    assert found.releases == scale_down(found, 2, 10**9).releases == releases


def test_a_cluster_that_reports_no_features_is_captured():
    def hook(call, _args):
        if call == "supported_features":
            raise KafkaError("describe the features", "UNSUPPORTED_VERSION")

    admin = FakeAdmin({TopicPartition("orders", 0): (1, 2)}, hook=hook)
    assert capture(admin, measure_s=0.01).releases == ()


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        (STARTS.format("4.1.1"), {"4.1.1"}),
        ("2026-01-31 12:00:00 INFO  [main] AppInfoParser:119 - Kafka version: 3.9.0\n", {"3.9.0"}),
        (STARTS.format("7.5.0-acme-ccs"), {"a build of 7.5.0"}),
        (STARTS.format("4.2.0-SNAPSHOT"), {"a build of 4.2.0"}),
        (STARTS.format("unknown"), set()),
        (STARTS.format("4.1"), set()),
    ],
)
def test_a_start_in_a_log_tells_the_release_and_not_the_name_of_a_build(text, releases):
    report = LogReport()
    report.add(EvidenceText("server.log", text))
    assert report.releases == releases


@pytest.mark.parametrize(
    ("words", "release"),
    [([], "3.9.1"), (["--kafka", "4.2.1"], "4.2.1")],
)
def test_files_of_an_older_cluster_are_replayed_on_its_release(words, release, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "topics.txt").write_text(TOPICS)
    (tmp_path / "files" / "server.log").write_text(STARTS.format("3.9.1"))
    assert main(["capture", "seen", "--from", "files", *words]) == 0
    broken = load(tmp_path / "seen" / INCIDENT).broken
    assert {host.kafka_version for host in broken.topology.brokers} == {release}
    assert "the brokers ran Kafka" not in capsys.readouterr().out
