import gzip
import json
import math
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.kafka.types import PartitionMove, PartitionState, TopicPartition
from testbed.reassignment.plan import Plan, PlanError, kip73_move_seconds, move_ratio, moves
from testbed.reassignment.plan_file import load_plan, plan_from_json


def _state(tp: TopicPartition, *replicas: int) -> PartitionState:
    return PartitionState(tp, replicas[0], 0, replicas, replicas)


def test_reads_and_writes_the_format_of_kafka_reassign_partitions() -> None:
    text = json.dumps(
        {
            "version": 1,
            "partitions": [
                {"topic": "t", "partition": 1, "replicas": [2, 3], "log_dirs": ["any", "any"]},
                {"topic": "t", "partition": 0, "replicas": [1]},
            ],
        }
    )
    plan = plan_from_json(text)
    assert plan.targets == {TopicPartition("t", 1): (2, 3), TopicPartition("t", 0): (1,)}
    assert plan.log_dirs == {TopicPartition("t", 1): ("any", "any")}
    assert plan.partitions_with_log_dirs() == []
    assert plan_from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "plan.json: document: expected an object, found list []"),
        ({"partitions": []}, "plan.json: version: missing"),
        ({"version": True, "partitions": []}, "version: expected a whole number, found bool True"),
        ({"version": 1}, "partitions: missing"),
        ({"version": 1, "partitions": [], "x": 1}, "x: unknown field; known: version, partitions"),
        ({"version": 1, "partitions": [3]}, "partitions[0]: expected an object, found int 3"),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": -1, "replicas": [1]}]},
            "partitions[0].partition: found -1; must be an integer from 0 to 2147483647",
        ),
        (
            {"version": 1, "partitions": [{"topic": "", "partition": 0, "replicas": [1]}]},
            'partitions[0].topic: found ""; must be a topic\'s name',
        ),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": []}]},
            "partitions[0].replicas: found []; must be a list of broker ids",
        ),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, "2"]}]},
            "partitions[0].replicas[1]: expected a whole number, found str '2'",
        ),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]},
            "partitions[0].replicas[1]: broker 1 is already in the list",
        ),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2**31]}]},
            "partitions[0].replicas[0]: found 2147483648; must be a broker id (0 to 2147483647)",
        ),
        (
            {"version": 1, "topics": [{"topic": "t"}]},
            "topics: it is the file of --topics-to-move-json-file; give the plan that --generate makes of it",
        ),
        (
            {
                "version": 1,
                "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["a", "b"]}],
            },
            "partitions[0].log_dirs: 2 log dirs for 1 replica; must be one each",
        ),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": "a"}]},
            "partitions[0].log_dirs: expected a list, found str 'a'",
        ),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replica": [1], "replicas": [1]}]},
            "partitions[0].replica: unknown field; known: topic, partition, replicas, log_dirs",
        ),
        (
            {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [b]} for b in (1, 2)]},
            "partitions[1]: t-0 is already given by partitions[0]",
        ),
    ],
)
def test_a_mistake_is_answered_with_its_field(document: object, problem: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_from_json(json.dumps(document), "plan.json")
    assert problem in str(caught.value)


def test_every_mistake_is_reported() -> None:
    with pytest.raises(PlanError) as caught:
        plan_from_json('{"version": "2", "partitions": [{"topic": 1, "partition": "0", "replicas": 1}]}')
    assert len(caught.value.problems) == 4


def test_not_json_names_line_and_column() -> None:
    with pytest.raises(PlanError, match=r"plan\.json:2:3: not JSON"):
        plan_from_json('{"version": 1,\n  partitions', "plan.json")


PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2],"log_dirs":["any","any"]}]}'
GENERATED = f"""Current partition replica assignment
{PLAN}

Proposed partition reassignment configuration
{PLAN}
"""
EXECUTED = f"""Current partition replica assignment

{PLAN}

Save this to use as the --reassignment-json-file option during rollback
Successfully started partition reassignment for t-0
"""
VERIFIED = "Status of partition reassignment:\r\nReassignment of partition t-0 is still in progress.\r\n"
LISTED = "Current partition reassignments:\nt-0: replicas: 3,2,1. adding: 3. removing: 1.\n"


@pytest.mark.parametrize("content", [PLAN.encode("utf-8-sig"), json.dumps(json.loads(PLAN), indent=2).encode()])
def test_other_line_ends_and_a_byte_order_mark_are_read(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(content.replace(b"\n", b"\r\n"))
    assert load_plan(file).targets == {TopicPartition("t", 0): (3, 2)}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "plan.json: it is empty; give a plan, as --reassignment-json-file"),
        (b"\xef\xbb\xbf\r\n", "plan.json: it is empty"),
        (
            gzip.compress(PLAN.encode(), mtime=0),
            "plan.json: it cannot be read: it is compressed with gzip; decompress it first",
        ),
        (PLAN.encode("utf-16"), "plan.json: it cannot be read: it is UTF-16"),
        (GENERATED.encode(), "plan.json:4: 'Proposed partition reassignment configuration': it is the output of --gen"),
        (EXECUTED.encode(), "plan.json:1: 'Current partition replica assignment': it is the output of --execute"),
        (VERIFIED.encode(), "plan.json:1: 'Status of partition reassignment': it is the output of --verify"),
        (LISTED.encode(), "plan.json:1: 'Current partition reassignments': it is the output of --list"),
        (PLAN[:-1].encode(), "ends too early: copy all of it"),
        (PLAN[:-7].encode(), "ends too early: copy all of it"),
        (f"{PLAN}\n{PLAN}".encode(), "plan.json:2:1: not JSON: text follows the plan; keep the plan alone"),
        (f"# mine\n{PLAN}".encode(), "plan.json:1:1: not JSON: Expecting value; give a plan"),
    ],
)
def test_another_file_is_refused_with_what_it_is_and_what_to_do(content: bytes, told: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_plan(file)
    assert told in str(caught.value)


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="the key 'version' is given twice"):
        plan_from_json('{"version": 1, "version": 1}')


def test_moves_are_what_changes_also_a_mere_reordering() -> None:
    a, b, c = (TopicPartition("t", p) for p in range(3))
    state = {a: _state(a, 1, 2, 3), b: _state(b, 1, 2), c: _state(c, 2)}
    plan = Plan({a: (4, 3, 5), b: (2, 1), c: (2,)})
    assert moves(plan, state) == (
        PartitionMove(a, (1, 2, 3), (4, 3, 5), (4, 5), (1, 2)),
        PartitionMove(b, (1, 2), (2, 1), (), ()),
    )


def test_a_partition_that_the_cluster_does_not_have_is_named() -> None:
    with pytest.raises(PlanError, match="partition t-9 does not exist in the cluster"):
        moves(Plan({TopicPartition("t", 9): (1,)}), {})


def test_kip73_estimate() -> None:
    # 100 of 200 partitions, 2 brokers of 1 GB each, 12 MB/s of quota less 2 MB/s of writes: 1 GB at 10 MB/s.
    ratio = move_ratio(100, 200)
    assert kip73_move_seconds(ratio, 1e9, 2, 12e6, 2e6) == pytest.approx(100)
    assert kip73_move_seconds(ratio, 1e9, 2, 2e6, 2e6) == math.inf


def test_a_ratio_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match="3 partitions to move of 2"):
        move_ratio(3, 2)
