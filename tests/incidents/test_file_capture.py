"""`testbed capture --from`: files of a cluster make the same capture as the cluster, and never more than they say."""

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.errors import UsageError
from testbed.incidents.capture import BrokerOutage
from testbed.incidents.captured_file import INCIDENT, TOPOLOGY, incident_document
from testbed.incidents.cluster_evidence import gathered
from testbed.incidents.evidence_text import EvidenceError, EvidenceText, decoded, read_texts
from testbed.incidents.file_capture import ASSUMED_BYTES, captured_files
from testbed.incidents.read import load
from testbed.incidents.scale_down import scale_down
from testbed.kafka.types import TopicPartition
from testbed.reassignment.plan import Plan

FILES = Path(__file__).parent / "files"
KRAFT, ZOOKEEPER = FILES / "kraft", FILES / "zookeeper"
ENDS = "what clients write is not in these files"
TOPICS = "Topic: t\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
ROWS = (
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2\n"
)
LISTED = "Current partition reassignments:\nt-0: replicas: 4,2,1. adding: 4. removing: 1.\n"


ROWS_MOVING = (
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 4,2,1\tIsr: 1,2\tAdding Replicas: 4\tRemoving Replicas: 1\n"
    "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2\n"
)


def plan(*moves):
    partitions = [{"topic": topic, "partition": number, "replicas": hosts} for topic, number, hosts in moves]
    return json.dumps({"version": 1, "partitions": partitions})


def capture(*contents, **options):
    texts = [EvidenceText(f"{number}.txt", content) for number, content in enumerate(contents)]
    return captured_files(gathered(texts), **options)


def refused(*contents, **options):
    with pytest.raises(UsageError) as caught:
        capture(*contents, **options)
    return str(caught.value)


def folder(path, *names, **options):
    files = [path / name for name in names] or [path]
    return captured_files(gathered(read_texts(files)), **options)


def test_the_files_of_a_cluster_with_kraft():
    found = folder(KRAFT).cluster
    assert found.brokers == {1: "zone-a", 2: "zone-b", 3: "zone-c", 4: "zone-a"}
    orders = found.topics["orders"]
    assert set(found.topics) == {"orders"}
    assert orders.replicas == ((1, 2), (2, 3), (3, 1)) and orders.targets == ((4, 2), (2, 4), None)
    assert orders.size_bytes == (300_000_000, 305_000_000, 310_000_000)
    assert orders.inbound_bytes_per_s == (0.0, 0.0, 0.0)
    assert orders.configs == {
        "min.insync.replicas": "1",
        "cleanup.policy": "compact,delete",
        "segment.bytes": "1073741824",
        "retention.ms": "86400000",
    }
    assert found.throttle_bytes_per_s == 8_000_000
    assert found.outages == (BrokerOutage(4, 42.0, 75.0),)
    assert [note.partition(":")[0] for note in found.notes] == [
        "1 log dirs had an error; the replay has them whole",
        "the partitions of 1 topic began to move over up to 12.5 s; the replay moves each topic at once",
        "the ISRs of 1 partition shrank from 50.1 s to 50.1 s after the first move began; the replay has those of its "
        "own brokers",
        "the ISRs of 1 partition grew from 149.7 s to 149.7 s after the first move began; the replay has those of its "
        "own brokers",
        "1 outages of brokers are not during these moves, or of other brokers",
        "what clients write is not in these files, so the replay has no load",
    ]


def test_the_files_of_a_cluster_with_zookeeper():
    found = folder(ZOOKEEPER).cluster
    payments = found.topics["payments"]
    assert payments.replicas == ((11, 12), (12, 13)) and payments.targets == ((14, 12), None)
    assert payments.size_bytes == (ASSUMED_BYTES, ASSUMED_BYTES)
    assert payments.configs == {"retention.ms": "172800000", "cleanup.policy": "compact,delete"}
    assert found.brokers == {11: None, 12: None, 13: None, 14: "cellar"}
    assert found.throttle_bytes_per_s == 5_000_000
    assert found.outages == (BrokerOutage(14, 4.9, 34.9),)
    assert found.notes[:3] == (
        "the racks of 3 brokers are not in these files, and one rack is assumed: kafka-broker-api-versions shows it",
        "the sizes of 2 partitions are not in these files, and 100 MB each are assumed: kafka-log-dirs --describe "
        "shows it",
        "when --verify ran, the moves were: 1 complete, 1 replaced, 1 running",
    )


def test_the_order_of_the_sources_of_moves():
    describe = TOPICS + ROWS
    log = (ZOOKEEPER / "controller.log").read_text().replace("payments-0", "t-1").replace("14,12,11", "13,2,3")
    log = log.replace("addingReplicas=14", "addingReplicas=13").replace("removingReplicas=11", "removingReplicas=3")
    of_plan = plan(("t", 1, [2, 9]))
    assert capture(describe, log).cluster.topics["t"].targets == (None, (13, 2))
    assert capture(describe, log, LISTED).cluster.topics["t"].targets == ((4, 2), None)
    assert capture(describe, log, LISTED, of_plan).cluster.topics["t"].targets == (None, (2, 9))
    given = Plan({TopicPartition("t", 1): (5, 6)})
    found = capture(describe, log, LISTED, of_plan, plan=given)
    assert found.cluster.topics["t"].targets == (None, (5, 6))
    assert found.remarks == ("1 targets in the files do not count: --plan replaces them",)
    assert capture(describe, LISTED, plan(("t", 0, [2, 9]))).remarks == (
        "0.txt:2: t-0 runs to 4,2; the plan counts: 2,9",
    )


def test_what_is_not_known_is_a_note_with_the_tool():
    found = capture(TOPICS + ROWS, plan(("t", 0, [3, 2]))).cluster
    assert found.throttle_bytes_per_s is None and found.outages == ()
    assert [note.rpartition(": ")[2] for note in found.notes] == [
        "kafka-broker-api-versions shows it",
        "kafka-configs --describe shows it",
        "kafka-log-dirs --describe shows it",
        "a capture with --bootstrap, or the brokers' metric BytesInPerSec, shows it",
    ]
    _document, lost = incident_document("x", found, 10**8)
    assert "load" not in _document and any(ENDS in each for each in lost)


def test_a_description_after_the_move_is_put_back_by_what_was_printed_before():
    after = TOPICS + ROWS.replace("Replicas: 1,2", "Replicas: 4,2")
    moves = plan(("t", 0, [4, 2]))
    assert refused(after, moves).startswith("the moves change nothing: the files have the placement after them; add")
    execute = "Current partition replica assignment\n\n" + plan(("t", 0, [1, 2])) + "\n"
    assert capture(after, moves, execute).cluster.topics["t"].replicas[0] == (1, 2)
    log = (KRAFT / "controller.log").read_text().replace("for topic orders", "for topic t")
    assert capture(after, log).cluster.topics["t"].replicas[0] == (2, 1)


def test_a_list_alone_tells_the_replicas_of_what_it_lists():
    found = capture(ROWS.split("\n", 1)[1], LISTED).cluster.topics["t"]
    assert found.replicas == ((2, 1), (2, 3)) and found.targets == ((4, 2), None)


def test_a_description_after_a_move_that_was_listed_has_the_replicas_before():
    after = TOPICS + ROWS.replace("Leader: 1\tReplicas: 1,2\tIsr: 1,2", "Leader: 4\tReplicas: 4,2\tIsr: 4,2")
    found = capture(after, LISTED).cluster.topics["t"]
    assert found.replicas[0] == (2, 1) and found.targets[0] == (4, 2)


RATES = "Dynamic configs for broker 1 are:\n  leader.replication.throttled.rate=9000000 sensitive=false synonyms={}\n"


@pytest.mark.parametrize(
    ("contents", "throttled"),
    [
        ([TOPICS + ROWS_MOVING], False),
        ([TOPICS.replace("Configs: ", "Configs: leader.replication.throttled.replicas=0:1,0:2") + ROWS_MOVING], True),
        ([TOPICS.replace("Configs: ", "Configs: follower.replication.throttled.replicas=1:2") + ROWS_MOVING], False),
        ([TOPICS + ROWS_MOVING, "Configs for topic t are:\n  leader.replication.throttled.replicas=*\n"], True),
        # Before the move there was no list. Without the topic's head nothing says which lists there are.
        ([TOPICS + ROWS, LISTED], True),
        ([ROWS_MOVING], True),
        (
            [
                TOPICS
                + ROWS
                + TOPICS.replace("Configs: ", "Configs: leader.replication.throttled.replicas=*")
                + ROWS_MOVING
            ],
            True,
        ),
    ],
)
def test_rates_hold_back_what_lists_name_in_files_too(contents, throttled):
    assert capture(*contents, RATES).cluster.topics["t"].throttled is throttled
    assert capture(*contents).cluster.topics["t"].throttled


EXECUTE = (
    "Current partition replica assignment\n\n" + plan(("t", 0, [1, 2])) + "\n\nSave this to use as the "
    "--reassignment-json-file option during rollback\nThe inter-broker throttle limit was set to 5000000 B/s\n"
    "Successfully started partition reassignment for t-0\n"
)


def test_execute_tells_the_throttle_and_may_run_again_with_another_one():
    move = plan(("t", 0, [4, 2]))
    assert capture(TOPICS + ROWS, EXECUTE, move).cluster.throttle_bytes_per_s == 5_000_000
    again = EXECUTE.replace("[1, 2]", "[4, 2, 1]").replace("5000000", "7000000").replace("inter-broker ", "")
    found = capture(TOPICS + ROWS_MOVING, EXECUTE + again, move)
    assert found.cluster.throttle_bytes_per_s == 7_000_000
    assert found.cluster.topics["t"].replicas[0] == (1, 2)
    assert "1.txt:10: t-0 has the replicas 4,2,1; those in 1.txt:3 count, which stand first: 1,2" in found.remarks
    assert any("the one that kafka-reassign-partitions set last" in note for note in found.cluster.notes)
    assert not any("so the replay has no throttle" in note for note in found.cluster.notes)
    # What the brokers report counts more.
    assert capture(TOPICS + ROWS, EXECUTE, move, RATES).cluster.throttle_bytes_per_s == 9_000_000
    # In two files it is not known which of them is the older one.
    assert refused(TOPICS + ROWS, EXECUTE, again, move).startswith("2.txt:3: t-0 has the replicas 4,2,1, and 1,2 in")


def test_what_runs_and_is_not_in_the_plan_is_counted():
    found = capture(TOPICS + ROWS, LISTED, plan(("t", 1, [2, 9]))).cluster
    assert "1 reassignments run that are not in the plan; the replay does not have them" in found.notes


def test_the_placement_before_a_move_alone_is_enough():
    execute = "Current partition replica assignment\n" + plan(("t", 0, [1, 2]), ("t", 1, [2, 3]))
    found = capture(execute, plan(("t", 0, [4, 2]))).cluster.topics["t"]
    assert found.replicas == ((1, 2), (2, 3)) and found.targets == ((4, 2), None)
    differs = capture(TOPICS + ROWS, execute.replace("[1, 2]", "[1, 5]"), plan(("t", 0, [4, 2])))
    assert differs.cluster.topics["t"].replicas[0] == (1, 2)
    assert differs.remarks == ("1.txt:2: t-0 had the replicas 1,5, and 1,2 in 0.txt:2, which count",)


def test_topics_of_logs_that_no_file_describes_are_left_out():
    log = (KRAFT / "controller.log").read_text()
    found = capture(TOPICS + ROWS, log + log.replace("for topic orders", "for topic t")).cluster
    assert set(found.topics) == {"t"}
    assert "the files do not have all replicas of 2 moves in the logs: without these" in found.notes
    assert refused(log.replace("partitionId=0", "partitionId=5")).startswith("0.txt:5: orders has 6 partitions, and")


@pytest.mark.parametrize(
    ("contents", "wrong"),
    [
        ([TOPICS + ROWS, plan(("t", 7, [1]))], "1.txt:1: it moves t-7, and no file describes that partition; add the"),
        (
            [TOPICS + ROWS, TOPICS + ROWS.replace("Replicas: 2,3", "Replicas: 2,4")],
            "1.txt:3: t-1 has the replicas 2,4, and 2,3 in 0.txt:3; give the output of one time",
        ),
        (
            [TOPICS + ROWS, TOPICS.replace("Count: 2", "Count: 3")],
            "1.txt:1: t has 3 partitions, and 2 in 0.txt:1; give the output of one time",
        ),
        (
            [TOPICS + ROWS.split("\n", 1)[0], plan(("t", 0, [3]))],
            "0.txt:1: t has 2 partitions, and the files have the replicas of 1; give the whole output of kafka-topics",
        ),
        (
            [ROWS.split("\n", 1)[1], plan(("t", 1, [3]))],
            "0.txt:1: t has 2 partitions, and the files have the replicas of 1",
        ),
        ([TOPICS.replace("Count: 2", "Count: 2000000000") + ROWS, LISTED], "0.txt:1: t has 2000000000 partitions"),
        (
            [LISTED, LISTED.replace("4,2,1. adding: 4", "5,2,1. adding: 5")],
            "1.txt:2: t-0 moves to 5,2, and to 4,2 in 0.txt:2",
        ),
        (
            ["hello"],
            "0.txt: it is none of the outputs that are read; give the output of kafka-topics --describe, kafka-",
        ),
        (['{"version":1,"topics":[{"topic":"t"}]}'], "0.txt: it is none of the outputs that are read"),
        (
            ["No partition reassignments found."],
            "no file has the replicas of a partition; add the output of kafka-topics",
        ),
        ([TOPICS + ROWS, '{"version":1,"partitions":['], "1.txt:1: not JSON: "),
    ],
)
def test_contradictions_and_gaps_are_refused_with_their_places(contents, wrong):
    assert refused(*contents).startswith(wrong)


def test_other_descriptions_of_one_partition_are_remarks_when_the_replicas_agree():
    found = capture(
        TOPICS + ROWS,
        TOPICS.replace("Configs: ", "Configs: retention.ms=5") + ROWS.replace("2\tReplicas", "3\tReplicas"),
        LISTED,
    )
    assert found.remarks == (
        "1.txt:1: t has other settings in 0.txt:1, which count",
        "1.txt:3: t-1 has another leader or ISR than in 0.txt:3, which counts",
    )


def test_topics_are_chosen_as_in_a_capture():
    files = [(KRAFT / name).read_text() for name in ("topics.txt", "generate.txt")]
    assert set(capture(*files, topics=["orders", "clicks"]).cluster.topics) == {"orders", "clicks"}
    assert refused(*files, topics=["absent"]).startswith("no file describes the topic absent; add the output of")
    assert refused(*files, topics=["__consumer_offsets"]).startswith(
        "__consumer_offsets: an internal topic is not captured"
    )
    assert refused(*files, topics=["clicks"]).startswith("what moves is not captured: orders; name a topic that moves")
    found = capture(*files, plan(("__consumer_offsets", 0, [1]))).cluster
    assert "1 partition of other topics moves: internal topics, or topics that --topic omits" in found.notes


def test_settings_and_rates_that_are_none_are_left_out_with_a_remark():
    configs = (
        "Configs for broker 1 are:\n  leader.replication.throttled.rate=fast\n  follower.replication.throttled.rate=7\n"
        "Configs for topic t are:\n  retention.ms=week\n  min.insync.replicas=1\n"
    )
    found = capture(TOPICS + ROWS, LISTED, configs)
    assert found.cluster.throttle_bytes_per_s == 7
    assert found.cluster.topics["t"].configs == {"min.insync.replicas": "1"}
    assert found.remarks == (
        "t: retention.ms is 'week', which is no such value: without it",
        "'fast' is no rate in B/s: without it",
    )


LOG = "[2025-06-03 10:{}:{},000] INFO [QuorumController id=1] {} (r.R)\n"
BEGINS = (
    "Replayed partition assignment change PartitionChangeRecord(partitionId={}, replicas={}, removingReplicas={}, "
    "addingReplicas={}) for topic {}"
)


def logged(*lines):
    return "".join(LOG.format(f"{second // 60:02}", f"{second % 60:02}", each) for second, each in lines)


def test_the_timeline_has_the_moves_and_outages_of_the_logs():
    describe = TOPICS + ROWS + (TOPICS + ROWS).replace("Topic: t", "Topic: u")
    log = logged(
        (50, "Fencing broker 3 because its session has timed out."),
        (60, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "t")),
        (90, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "u")),
        (100, "Fencing broker 1 because its session has timed out."),
        (130, "Unfenced broker: UnfenceBrokerRecord(id=1, epoch=1)"),
    )
    found = capture(describe, log).cluster
    assert {name: topic.begins_s for name, topic in found.topics.items()} == {"t": 0.0, "u": 30.0}
    assert found.outages == (BrokerOutage(3, -10.0, None), BrokerOutage(1, 40.0, 70.0))
    document, _lost = incident_document("x", found, 10**9)
    entries = {entry["name"]: (entry["at"], entry["do"]) for entry in document["timeline"] if "name" in entry}
    assert [(name, at) for name, (at, _do) in entries.items()] == [
        ("move", "15s"),
        ("move-2", "45s"),
        ("stop-1", "1s"),
        ("stop-2", "55s"),
        ("return-2", "85s"),
    ]
    assert entries["stop-1"][1] == {"broker_kill": {"host": "b3"}} and entries["return-2"][1] == {
        "restart": {"host": "b1"}
    }
    small = scale_down(found, 4, 40_000_000)
    assert [each.stopped_s for each in small.outages] == pytest.approx([-1.0, 4.0])
    assert small.topics["u"].begins_s == pytest.approx(3.0)
    assert "the timeline is × 0.1, as the moves are" in small.notes


def test_a_long_timeline_is_brought_into_one_replay_and_the_throttle_stays_to_the_end():
    describe = TOPICS + ROWS + (TOPICS + ROWS).replace("Topic: t", "Topic: u")
    log = logged((0, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "t")))
    log += logged((0, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "u"))).replace(" 10:", " 12:")
    rates = "Configs for broker 1 are:\n  leader.replication.throttled.rate=9000000\n"
    document, lost = incident_document("x", capture(describe, log, rates).cluster, 10**9)
    assert "the timeline is × 0.25: it had 7200 s, and a replay ends after 3600 s" in lost
    assert [entry["at"] for entry in document["timeline"][:2]] == ["15s", "1815s"]
    assert document["timeline"][2]["at"] == {"move_progress": {"share": "done", "topic": "u"}}


def test_merged_brokers_have_one_outage_at_a_time():
    describe = TOPICS + ROWS
    log = logged(
        (0, BEGINS.format(0, "[4, 2, 1]", "[1]", "[4]", "t")),
        (10, "Fencing broker 2 because its session has timed out."),
        (15, "Fencing broker 3 because its session has timed out."),
        (20, "Unfenced broker: UnfenceBrokerRecord(id=2, epoch=1)"),
        (30, "Unfenced broker: UnfenceBrokerRecord(id=3, epoch=1)"),
        (50, "Fencing broker 2 because its session has timed out."),
    )
    cluster = capture(describe, log).cluster
    merged = scale_down(cluster, 1, 10**12)
    assert merged.outages == (BrokerOutage(1, 10.0, 30.0), BrokerOutage(1, 50.0, None))
    larger = "2 outages stop more than before: other brokers are merged into the one that stops"
    assert larger in merged.notes
    assert not any("stop more than before" in note for note in scale_down(cluster, 4, 10**12).notes)


def test_outages_without_a_move_and_moves_without_a_beginning_are_notes():
    log = logged(
        (0, "Successfully altered 1 out of 1 partition reassignment(s)."),
        (9, "Fencing broker 1 because its session has timed out."),
    )
    found = capture(TOPICS + ROWS, LISTED, log).cluster
    assert found.outages == ()
    assert "the logs have 1 outages of brokers, but not when these moves began" in found.notes
    assert "the logs have 1 requests to move partitions, but not of which ones" in found.notes


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: gzip.compress(text[:50].encode()) + gzip.compress(text[50:].encode()),
        lambda text: gzip.compress(text.replace("\n", "\r\n").encode("utf-16")),
    ],
)
def test_any_encoding_is_the_same_text(encode):
    text = (KRAFT / "topics.txt").read_text()
    assert decoded(encode(text)) == text


def test_the_size_of_a_file_is_bounded_before_and_after_decompression():
    for content in (b"x" * 1001, gzip.compress(b"x" * 1001), gzip.compress(b"x" * 600) * 2):
        with pytest.raises(ValueError, match="larger than 1000 bytes"):
            decoded(content, 1000)
    assert len(decoded(gzip.compress(b"x" * 1000), 1000)) == 1000
    with pytest.raises(ValueError, match="ends too early"):
        decoded(gzip.compress(b"hello" * 100)[:-9])


def test_an_archive_is_refused_whose_headers_would_hide_first_lines():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(KRAFT, arcname="evidence")
    with pytest.raises(ValueError, match="a tar archive; unpack it"):
        decoded(stream.getvalue())


@pytest.mark.parametrize(
    ("pack", "name"), [(bz2.compress, "bzip2"), (lzma.compress, "xz"), (lambda _text: b"\x28\xb5\x2f\xfd", "zstd")]
)
def test_a_rotated_log_that_is_packed_in_another_way_is_named(pack, name):
    with pytest.raises(ValueError, match=f"^{name}; unpack it$"):
        decoded(pack(b"text"))


def test_folders_are_read_without_their_folders_and_other_files_are_named(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "topics.txt").write_text("unread")
    for name in ("topics.txt", "generate.txt"):
        (tmp_path / f"{name}.unlike").write_bytes((KRAFT / name).read_bytes())
    (tmp_path / "photo.log").write_bytes(bytes(range(256)))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"hello" * 100)[:-9])
    os.mkfifo(tmp_path / "pipe")
    found = captured_files(gathered(read_texts([tmp_path])))
    assert found.remarks == (
        f"{tmp_path}/cut.gz is left out: the gzip ends too early: copy all of it",
        f"{tmp_path}/inner is left out: a folder; give it with --from, too",
        f"{tmp_path}/photo.log is left out: it is none of the outputs that are read",
        f"{tmp_path}/pipe is left out: not a regular file",
    )
    with pytest.raises(EvidenceError, match=r"cut.gz: the gzip ends too early: .*; give the output of kafka-topics"):
        gathered(read_texts([tmp_path / "cut.gz"]))
    for absent in (tmp_path / "absent", tmp_path / "a\0b"):
        with pytest.raises(EvidenceError, match="it cannot be read: .*; give a file or a folder"):
            list(read_texts([absent]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(EvidenceError, match="the folder has no files; folders in it are not read"):
        list(read_texts([tmp_path / "empty"]))


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return lambda *words: main(["capture", "seen", *map(str, words)])


def test_the_command_writes_what_replays_and_names_no_file_in_it(run, tmp_path, capsys):
    assert run("--from", KRAFT, "--scale-down", "3,100MB", "--anonymise", "--nic", "100mbit", "--kafka", "4.2.1") == 0
    broken = load(tmp_path / "seen" / INCIDENT).broken
    assert [entry.name for entry in broken.entries][:3] == ["move", "stop-1", "return-1"]
    written = "".join((tmp_path / "seen" / name).read_text() for name in (INCIDENT, TOPOLOGY))
    assert not [name for name in ("orders", "zone-", "log-dirs", str(KRAFT), "example") if name in written]
    printed = capsys.readouterr().out
    assert f"remark: {KRAFT}/log-dirs.txt:3: a log dir of broker 3 has the error" in printed
    assert "not as captured: the timeline is ×" in printed


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ([], "give either --bootstrap, for a cluster that this machine reaches, or --from"),
        (["--bootstrap", "x:1", "--from", KRAFT], "give either --bootstrap"),
        (
            ["--from", KRAFT, "--measure-for", "1s"],
            "--measure-for is for a cluster that answers; with --from, leave it out",
        ),
        (["--from", KRAFT, "--command-config", "c"], "--command-config is for a cluster that answers"),
        (["--from", "absent"], "absent: it cannot be read: No such file or directory; give a file or a folder"),
        (["--from", KRAFT / "topics.txt"], "nothing moves"),
        (["--from", KRAFT / "configs.txt"], "no file has the replicas of a partition"),
    ],
)
def test_wrong_input_ends_with_64_and_writes_nothing(run, words, wrong, tmp_path, capsys):
    assert run(*words) == 64
    assert wrong in capsys.readouterr().err
    assert not (tmp_path / "seen").exists()


@pytest.mark.parametrize("order", [(ROWS, ROWS_MOVING), (ROWS_MOVING, ROWS), (ROWS_MOVING, ROWS_MOVING)])
def test_of_outputs_one_after_the_other_in_a_file_the_one_in_which_it_moves_counts(order):
    found = capture("".join(TOPICS + rows for rows in order))
    assert (found.cluster.topics["t"].replicas, found.cluster.topics["t"].targets) == (
        ((1, 2), (2, 3)),
        ((4, 2), None),
    )
    assert any("described at another time" in each for each in found.remarks) is (order[0] != order[1])


def test_outputs_of_two_times_in_two_files_contradict_each_other():
    with pytest.raises(EvidenceError, match="give the output of one time"):
        capture(TOPICS + ROWS, TOPICS + ROWS_MOVING)


def test_a_log_without_a_time_that_is_read_says_which_is():
    with pytest.raises(EvidenceError, match="none of its lines has a time that is read, such as 2026-01-31"):
        capture("[06/03/25 10:00:00] INFO Shrinking ISR (kafka.cluster.Partition)\n")
