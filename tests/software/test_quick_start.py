"""The two shortcuts of a broker's start, against the release and the JVM they shorten."""

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.software.engine import ROLE_LABEL, EngineSocket
from testbed.software.format import CHECKPOINT, META, bootstrap_checkpoint, meta_properties, run_format
from testbed.software.image import node_image
from testbed.software.jvm import broker_command, cds_archive, mounts
from testbed.software.kafka import kafka_release

pytestmark = pytest.mark.containers

# In the header of each of the checkpoint's batches: all that differs between two runs of the tool.
BATCH_LENGTH, CRC, TIMES = slice(8, 12), slice(17, 21), slice(27, 43)


def without_times(checkpoint: bytes) -> list[bytes]:
    batches, rest = [], bytearray(checkpoint)
    while rest:
        length = 12 + int.from_bytes(rest[BATCH_LENGTH])
        batch, rest = rest[:length], rest[length:]
        batch[CRC] = bytes(4)
        batch[TIMES] = bytes(16)
        batches.append(bytes(batch))
    return batches


@pytest.fixture
def formatted(tmp_path: Path) -> Callable[[int], Path]:
    def make(node_id: int) -> Path:
        (folder := tmp_path / str(node_id)).mkdir()
        return run_format(kafka_release(), node_id, folder)

    return make


def test_the_checkpoint_depends_on_nothing_but_the_release(formatted: Callable[[int], Path]) -> None:
    one, other = formatted(1), formatted(7)
    kept = bootstrap_checkpoint(kafka_release()).read_bytes()
    made = [(folder / CHECKPOINT).read_bytes() for folder in (one, other)]
    assert without_times(made[0]) == without_times(made[1]) == without_times(kept)
    assert b"metadata.version" in kept
    assert "node.id=7" in (other / META).read_text()


def test_meta_properties_has_the_fields_that_format_writes(formatted: Callable[[int], Path]) -> None:
    def fields(text: str) -> set[str]:
        return {line.partition("=")[0] for line in text.splitlines() if line and not line.startswith("#")}

    assert fields((formatted(1) / META).read_text()) == fields(meta_properties("c", 1, "d"))


def test_the_archive_is_used_also_with_the_agent() -> None:
    release, image = kafka_release(), node_image()
    # Without a properties file the main class prints its usage and ends: enough to see where it came from.
    archive = cds_archive(release, image)
    command = broker_command(release, "", archive=archive, extra_flags=("-Xlog:class+load",))[:-1]
    definition = {
        "Image": image.id,
        "Entrypoint": [],
        "Cmd": list(command),
        "Labels": {ROLE_LABEL: "test"},
        "HostConfig": {
            "NetworkMode": "none",
            "Binds": [f"{source}:{target}:ro" for source, target in mounts(release, archive).items()],
        },
    }
    with EngineSocket.from_environment().container(definition) as container:
        loaded = [
            line for line in container.output() if " kafka.Kafka$ source:" in line or " kafka.Kafka source:" in line
        ]
    assert loaded
    assert all(line.endswith("shared objects file (top)") for line in loaded)
