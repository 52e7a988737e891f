"""Kafka's folders on a host: the commands run here on a folder of the test's own."""

import io
import subprocess
import tarfile

from testbed.kafkatest.layout import DEV, KafkaHome


def scripts():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("bin/kafka-run-class.sh", "config/a.properties"):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = 3, 0o600
            archive.addfile(entry, io.BytesIO(b"a=b"))
    return buffer.getvalue()


def test_a_release_has_libs_and_a_build_what_the_tests_look_for_by_path():
    release = KafkaHome("3.9.1", "3.9.1", "/cache/3.9.1-1", b"", "the checkout")
    assert release.links == {"/opt/kafka-3.9.1/libs": "/opt/testbed-jars/3.9.1/libs"}
    dev = KafkaHome(DEV, "4.0.0", "/cache/4.0.0-1", b"", "the checkout")
    assert dev.links["/opt/kafka-dev/core/build/libs"] == "/opt/testbed-jars/dev/test-libs"
    assert dev.links["/opt/kafka-dev/tools/build/libs"] == "/opt/testbed-jars/dev/libs"


def test_the_command_lays_out_scripts_and_links_also_a_second_time(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.kafkatest.layout.ROOT", str(tmp_path / "o p t"))
    home = KafkaHome(DEV, "4.0.0", "/cache", scripts(), "the checkout")
    for _ in range(2):
        subprocess.run(["sh", "-c", home.install("root")], input=home.scripts, check=True)
    folder = tmp_path / "o p t" / "kafka-dev"
    script = folder / "bin/kafka-run-class.sh"
    assert script.read_bytes() == b"a=b"
    assert script.stat().st_mode & 0o111
    assert (folder / "config/a.properties").stat().st_mode & 0o044
    assert str((folder / "libs").readlink()) == "/opt/testbed-jars/dev/libs"
    assert str((folder / "core/build/libs").readlink()) == "/opt/testbed-jars/dev/test-libs"
