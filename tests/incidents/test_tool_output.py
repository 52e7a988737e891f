"""The outputs of Kafka's tools, release by release, and what is no such output."""

import re

import pytest

from testbed.incidents.evidence_text import EvidenceText, SourceLine, json_blocks
from testbed.incidents.reassignment_output import ReassignmentReport
from testbed.incidents.tool_output import LogDirReport, broker_racks, described_topics, entity_configs
from testbed.kafka.types import ConfigResource, TopicPartition


def text(content, file="f"):
    return EvidenceText(file, content)


def described(content):
    problems = []
    topics, partitions = described_topics(text(content), problems)
    return topics, partitions, problems


@pytest.mark.parametrize(
    "head",
    [
        "Topic: t\tTopicId: Zt4cXn1bQ7m9eWk2uVx3Yg\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: a=b,c=d,e,f=",
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: a=b,c=d,e,f=",
        "Topic:t\tPartitionCount:1\tReplicationFactor:2\tConfigs:a=b,c=d,e,f=",
        "Topic: t       TopicId: x PartitionCount: 1       ReplicationFactor: 2    Configs: a=b,c=d,e,f=",
    ],
)
def test_the_head_of_a_topic(head):
    (topic,), _partitions, problems = described(head)
    assert (topic.topic, topic.partitions, topic.configs) == ("t", 1, {"a": "b", "c": "d,e", "f": ""})
    assert problems == []


@pytest.mark.parametrize(
    ("tail", "leader", "isr", "adding", "removing"),
    [
        ("Leader: 1\tReplicas: 1,2\tIsr: 2,1", 1, (2, 1), (), ()),
        ("Leader: none\tReplicas: 1,2\tIsr: ", None, (), (), ()),
        ("Leader: -1\tReplicas: 1,2\tIsr:", None, (), (), ()),
        ("Leader: 1\tReplicas: 1,2\tIsr: 1\tMarkedForDeletion: true", 1, (1,), (), ()),
        ("Leader: 1\tReplicas: 1,2\tIsr: 1\tElr: N/A\tLastKnownElr: N/A", 1, (1,), (), ()),
        (
            "Leader: 1\tReplicas: 1,2\tIsr: 1\tAdding Replicas: 2\tRemoving Replicas: \tElr: \tLastKnownElr: ",
            1,
            (1,),
            (2,),
            (),
        ),
        (
            "Leader: 1\tReplicas: 1,2\tIsr: 1\tAdding Replicas: \tRemoving Replicas: 1\tElr: 2\tOffline: 2",
            1,
            (1,),
            (),
            (1,),
        ),
        ("Leader: 1     Replicas: 1,2 Isr: 1  Elr:    LastKnownElr: ", 1, (1,), (), ()),
    ],
)
def test_a_partition(tail, leader, isr, adding, removing):
    _topics, (each,), problems = described(f"\tTopic: t\tPartition: 0\t{tail}\n")
    assert (each.state.leader, each.state.replicas, each.state.isr) == (leader, (1, 2), isr)
    running = each.running
    assert ((running.adding, running.removing) if running else ((), ())) == (adding, removing)
    assert problems == [] and str(each.place) == "f:1"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("Topic: t\tPartition: 0\tLeader: 1\tIsr: 1", "the line has no Replicas"),
        ("Topic: t\tPartition: x\tLeader: 1\tReplicas: 1\tIsr: 1", "'x' is not an id"),
        ("Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,1\tIsr: 1", "'1,1' has a broker twice"),
        ("Topic: t\tPartition: 0\tLeader: 1\tReplicas: \tIsr: 1", "t-0 has no replicas"),
        ("Topic: t\tPartition: 0\tLeader: 1\tReplicas: 99999999999\tIsr: 1", "'99999999999' is not an id"),
        ("Topic: $(x)\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1", "is not a topic's name"),
        ("Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tAdding Replicas: 3", r"brokers \[3\] are added"),
        ("Topic: t\tPartitionCount: many\tConfigs: ", "'many' is not an id"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line, wrong):
    _topics, _partitions, (problem,) = described(f"\n{line}\n")
    assert problem.startswith("f:2: ")
    assert problem.endswith("; copy the whole output of kafka-topics --describe")
    assert re.search(wrong, problem)


def test_the_configuration_of_brokers_and_topics():
    problems = []
    found = entity_configs(
        text(
            "Configs for broker 1 are:\n  leader.replication.throttled.rate=5 sensitive=false synonyms={X:a=1, Y:b=2}\n"
            "Dynamic configs for broker 2 are:\nDefault config for brokers in the cluster are:\n"
            "  x=null sensitive=true synonyms={}\n"
            "All configs for topic t are:\n"
            "  retention.ms=7 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=7}\n"
            "  segment.bytes=9 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=9}\n"
            "Configs for topics 'u' are cleanup.policy=compact,delete,retention.ms=3\n"
            "Configs for brokers '<default>' are follower.replication.throttled.rate=4\n"
            "Configs for default brokers are leader.replication.throttled.rate=6\nConfigs for brokers '9' are \n"
        ),
        problems,
    )
    assert problems == []
    assert [(each.owner, each.values) for each in found] == [
        (ConfigResource.broker(1), {"leader.replication.throttled.rate": "5"}),
        (ConfigResource.broker(2), {}),
        (ConfigResource("broker", ""), {}),
        (ConfigResource.topic("t"), {"retention.ms": "7"}),
        (ConfigResource.topic("u"), {"cleanup.policy": "compact,delete", "retention.ms": "3"}),
        (ConfigResource("broker", ""), {"follower.replication.throttled.rate": "4"}),
        (ConfigResource("broker", ""), {"leader.replication.throttled.rate": "6"}),
        (ConfigResource.broker(9), {}),
    ]


def test_the_racks_of_brokers():
    found = broker_racks(
        text(
            "a.b:9092 (id: 1 rack: r 1 isFenced: false) -> (\n\tProduce(0): 0 to 13 [usable: 13],\n)\n"
            "b:9092 (id: 2 rack: null) -> (\nc:9092 (id: -1 rack: null) -> (\n"
            # A registered broker that hangs.
            "d:9092 (id: 4 rack: r2) -> ERROR: org.apache.kafka.common.errors.DisconnectException\n"
            "[2025-01-01 00:00:00,000] INFO new controller x:9093 (id: 3000 rack: null) (y)\n"
        )
    )
    assert [(each.broker, each.rack) for each in found] == [(1, "r 1"), (2, None), (4, "r2")]


def blocks(content):
    problems = []
    return list(json_blocks(text(content), problems)), problems


def test_log_dirs():
    (block,), _problems = blocks(
        "Querying brokers for log directories information\nReceived log directory information from brokers 1\n"
        '{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/a","error":null,"partitions":['
        '{"partition":"a-b-0","size":7,"offsetLag":0,"isFuture":false},'
        '{"partition":"a-b-0","size":9,"offsetLag":0,"isFuture":true}]},'
        '{"logDir":"/b","error":"KafkaStorageException","partitions":[]}]}]}\n'
    )
    report, problems = LogDirReport(), []
    assert report.add_block(block, problems)
    assert problems == [] and report.brokers == {1}
    assert report.size_bytes == {TopicPartition("a-b", 0): 7}
    assert report.errors == [(1, "KafkaStorageException", SourceLine("f", 3))]


@pytest.mark.parametrize(
    "document",
    [
        '{"brokers": [1]}',
        '{"brokers": [{"broker": "1", "logDirs": []}]}',
        '{"brokers": [{"broker": 1, "logDirs": {}}]}',
        '{"brokers": [{"broker": 1, "logDirs": [{"partitions": [{"partition": "t-0", "size": -1}]}]}]}',
        '{"brokers": [{"broker": 1, "logDirs": [{"partitions": [{"partition": "t", "size": 1}]}]}]}',
        '{"brokers": [{"broker": 1, "logDirs": [{"partitions": [{"partition": 3, "size": 1}]}]}]}',
        '{"brokers": [{"broker": 1e999, "logDirs": []}]}',
    ],
)
def test_other_log_dirs_are_a_problem_with_a_place(document):
    (block,), _none = blocks(document)
    problems = []
    assert LogDirReport().add_block(block, problems)
    (problem,) = problems
    assert re.match(r"f:1: .*; copy the whole output of kafka-log-dirs --describe$", problem)


def test_json_that_is_cut_off_has_its_line():
    found, problems = blocks('Current partition replica assignment\n\n{"version":1,\n"partitions":[')
    assert found == []
    assert problems[0].startswith("f:4: not JSON: ") and "copy the whole output" in problems[0]
    assert blocks("{ braces of something else\n{") == ([], [])
    assert blocks('{"partitions":' + "[" * 100_000)[1] != []


def test_plans_lists_and_verification():
    report, problems = ReassignmentReport(), []
    content = text(
        "Current partition replica assignment\n\n"
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}\n'
        "\nProposed partition reassignment configuration\n"
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2],"log_dirs":["any","/x"]}]}\n'
        "Current partition reassignments:\n"
        "t-0: replicas: 3,2,1. adding: 3. removing: 1.\nt-1: replicas: 1,2. adding: 4,5. removing: 1,2.\n"
        "Status of partition reassignment:\nReassignment of partition t-0 is still in progress.\n"
        "Reassignment of partition [t,1] completed successfully\nReassignment of partition t-2 is complete.\n"
        "There is no active reassignment of partition t-3, but replica set is 1,2 rather than 1,4.\n"
    )
    assert report.add_lines(content, problems)
    assert all(report.add_block(block, problems) for block in json_blocks(content, problems))
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    assert problems == []
    assert report.current[first].replicas == (1, 2)
    assert report.plan().targets == {first: (3, 2)} and report.plan().partitions_with_log_dirs() == [first]
    assert report.listed[first].running.target == (3, 2) and report.listed[second].running.target == (4, 5)
    assert report.verified == {"running": 1, "complete": 2, "replaced": 1}
    assert [each.partition(": ")[2] for each in report.replaced] == [
        "no reassignment of t-3 runs, and its replicas are not 1,4"
    ]


def test_no_reassignments_is_an_answer():
    report = ReassignmentReport()
    assert report.add_lines(text("No partition reassignments found.\n"), [])
    assert report.plan() is None


def test_two_plans_for_a_partition_are_refused_with_both_places():
    report, problems = ReassignmentReport(), []
    for file, replicas in (("a", "[1,2]"), ("b", "[1,3]")):
        document = f'\n{{"version":1,"partitions":[{{"topic":"t","partition":0,"replicas":{replicas}}}]}}'
        for block in json_blocks(text(document, file), problems):
            report.add_block(block, problems)
    assert problems == [
        "b:2: t-0 has the replicas 1,3, and 1,2 in a:2; give one of them: a rollback's plan has the placement before "
        "the move"
    ]


def test_a_mistake_in_a_plan_has_its_file_and_field():
    report, problems = ReassignmentReport(), []
    (block,), _none = blocks('\n\n{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[]}]}')
    assert report.add_block(block, problems)
    assert problems == ["f: partitions[0].replicas: found []; must be a list of broker ids"]
