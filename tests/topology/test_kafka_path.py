from pathlib import Path

import pytest

from testbed.topology import TopologyError, load, load_document, loads

TEXT = """\
name: t
kafka: {path: ../kafka}
defaults: {nic: {rate: 400mbit}}
hosts:
  b1: {role: both}
  b2: {role: broker, kafka: {version: 4.3.1}}
  b3: {role: broker, kafka: {version: 4.3.1-our-fix-2+0123456789ab}}
"""


def test_a_path_counts_from_the_files_folder_and_survives_as_a_document(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "t.yaml").write_text(TEXT)
    topology = load(tmp_path / "here" / "t.yaml")
    versions = [host.kafka_version for host in topology.hosts]
    assert versions == [str(tmp_path / "kafka"), "4.3.1", "4.3.1-our-fix-2+0123456789ab"]
    assert load_document(topology.to_document()).hosts == topology.hosts
    assert topology.with_kafka_version("/k.tgz").hosts[1].kafka_version == "/k.tgz"


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("../kafka", "~no-such-user/kafka"),
        TEXT.replace("name: t", "name: t\nmachines: {m1: {key: ~no-such-user/id}}"),
        TEXT.replace("name: t", "name: t\nremote_storage: {manager: ~no-such-user/jars}"),
    ],
    ids=["kafka", "a key", "a manager"],
)
def test_a_home_folder_of_a_user_that_does_not_exist_is_refused_at_its_line(text: str) -> None:
    with pytest.raises(TopologyError, match=r"<string>:\d+:\d+: .*home folder of no-such-user, and there is no such"):
        loads(text)


def test_version_and_path_exclude_each_other() -> None:
    document = {"name": "t", "kafka": {"version": "4.3.1", "path": "k"}, "hosts": {"b1": {"role": "both"}}}
    with pytest.raises(TopologyError, match="path and version are both given; allowed: one of the two"):
        load_document(document)
