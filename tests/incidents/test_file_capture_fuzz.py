"""Whatever bytes files have, a capture of them is made or refused with a message: damaged samples, by a seed."""

import gzip
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.errors import UsageError
from testbed.incidents.captured_file import incident_document, write_capture
from testbed.incidents.cluster_evidence import gathered
from testbed.incidents.evidence_text import EvidenceText, decoded
from testbed.incidents.file_capture import captured_files
from testbed.incidents.scale_down import scale_down

SAMPLES = sorted((Path(__file__).parent / "files").glob("*/*"))
TOKENS = (
    b'Topic: |Replicas: |-1|99999999999999999999|1,1|{|}|[|]|"partitions":|\n|\t|\r|\0|\xff\xfe|\x1f\x8b|\xe2\x80\xa8|'
    b"\x0b|null|1e999|\\ud800|2025-99-99|[2025-06-03 10:00:00,000] INFO | are:\n|t-0|adding: |__x|..|=|\xc2\xb2|%s$(x)"
).split(b"|")


def damaged(content, draw):
    """Return the bytes with some cut out, put in, repeated, replaced or flipped."""
    made = bytearray(content)
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(made) + 1)
        upto = min(len(made), at + draw.choice((1, 2, 8, 40, 400)))
        match draw.randrange(6):
            case 0:
                del made[at:upto]
            case 1:
                made[at:at] = draw.choice(TOKENS)
            case 2:
                made[at:at] = made[at:upto]
            case 3:
                made[at:upto] = draw.choice(TOKENS)
            case 4 if at < len(made):
                made[at] = draw.randrange(256)
            case _:
                made[at:at] = draw.choice(SAMPLES).read_bytes()[: draw.randrange(2000)]
    return bytes(made)


def encoded(content, draw):
    match draw.randrange(8):
        case 0:
            return gzip.compress(content, 1)
        case 1:
            return damaged(gzip.compress(content, 1), draw)
        case 2:
            return content.decode("utf-8", "replace").encode("utf-16")
        case _:
            return content


def drawn(draw):
    """Return the contents of a few files, most of one cluster and most of them as they are."""
    cluster = draw.choice(("kraft", "zookeeper"))
    files = [each for each in SAMPLES if each.parent.name == cluster or draw.random() < 0.05]
    chosen = draw.sample(files, draw.randint(1, len(files)))
    return [
        encoded(damaged(each.read_bytes(), draw) if draw.random() < 0.6 else each.read_bytes(), draw) for each in chosen
    ]


def texts(contents):
    for number, content in enumerate(contents):
        try:
            yield EvidenceText(f"f{number}", decoded(content, 10**6), named=number % 2 == 0)
        except ValueError as error:
            yield EvidenceText(f"f{number}", "", False, str(error))


def captured(contents, draw):
    made = captured_files(gathered(texts(contents)), topics=draw.choice(([], [], ["orders"], ["payments"])))
    cluster = made.cluster
    for topic in cluster.topics.values():
        assert len(topic.replicas) == len(topic.targets) == len(topic.size_bytes) == len(topic.inbound_bytes_per_s) > 0
        for hosts in (*topic.replicas, *(target for target in topic.targets if target is not None)):
            assert hosts and len({*hosts}) == len(hosts) and {*hosts} <= {*cluster.brokers}
    assert all(size >= 0 for topic in cluster.topics.values() for size in topic.size_bytes)
    if draw.random() < 0.5:
        cluster = scale_down(cluster, draw.randint(1, 4), 10**8)
    return cluster


@pytest.mark.parametrize("seed", range(4))
def test_any_bytes_are_captured_or_refused(seed):
    draw = random.Random(f"bytes {seed}")
    made = 0
    for _ in range(150):
        contents = drawn(draw)
        try:
            incident_document("x", captured(contents, draw), 10**8)
            made += 1
        except UsageError as error:
            assert str(error).strip(), contents
    assert made > 10, "so few captures say nothing about what becomes of them"


def test_what_is_captured_also_replays_or_is_refused(tmp_path):
    draw = random.Random("written")
    for number in range(15):
        try:
            cluster = captured(drawn(draw), draw)
            write_capture(tmp_path / f"c{number}", "x", cluster, 10**8, datetime(2026, 1, 1, tzinfo=UTC))
        except UsageError:
            assert not (tmp_path / f"c{number}").exists()
    assert not list(tmp_path.glob(".*"))


def test_the_command_prints_a_message_and_no_traceback(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    draw = random.Random("command")
    for number in range(15):
        folder = tmp_path / f"in{number}"
        folder.mkdir()
        for name, content in enumerate(drawn(draw)):
            (folder / f"{name}.txt").write_bytes(content)
        out = tmp_path / f"out{number}"
        code = main(["capture", "x", "--from", str(folder), "--out", str(out)])
        assert code in (0, 64) and out.exists() == (code == 0)
        assert "Traceback" not in capsys.readouterr().err
