"""`testbed throttle …` from its words to its exit code, against a fake cluster."""

import json

import pytest

from testbed.cli.main import main
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.owner import Owner
from testbed.reassignment.batching.job import Job, JobControl, JobFolder
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from testbed.throttle.journal import JournalFolder, ThrottleJournal

MB = 10**6
T0 = TopicPartition("t", 0)
HERE = ["--bootstrap", "fake:9092"]


def estimate(plan, *words):
    return main(["throttle", "estimate", *HERE, "--plan", plan, "--measure", "10ms", *words])


def test_an_estimate_tells_the_throttle_the_time_and_who_binds(cluster, plan, capsys):
    assert estimate(plan, "--deadline", "110s") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "throttle 10MB/s (10000000 B/s)"
    assert lines[1].startswith("time     1.667min, at most 1.833min; what the NICs carry is not known (--nic)")
    assert lines[2].startswith("KIP-73   3.333min by its own formula")
    assert lines[5].split() == ["2", "receive", "1GB", "0B/s", "10MB/s", "–", "1.667min", "bottleneck"]
    assert lines[6].split() == ["1", "transmit", "1GB", "0B/s", "10MB/s", "–", "1.667min"]
    assert "measured over 10ms as the growth of the leaders' logs" in lines[-1] or "1 of 1 partitions" in lines[-1]


def test_an_estimate_for_programs(cluster, plan, capsys):
    assert estimate(plan, "--share", "30%", "--nic", "1gbit", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["throttle_bytes_per_s"] == int(0.3 * 125 * MB / 1.062)
    assert [(line["broker"], line["direction"], line["bottleneck"]) for line in told["brokers"]] == [
        (2, "receive", True),
        (1, "transmit", False),
    ]


def test_what_cannot_be_met_is_exit_code_1_with_what_can(cluster, plan, capsys):
    assert estimate(plan, "--deadline", "10s", "--nic", "400mbit") == 1
    assert capsys.readouterr().out == (
        "cannot be met: in 10s broker 2 (receive) needs a throttle of 110MB/s, and its NIC leaves 47.08MB/s for it; "
        "23.36s can\n"
    )
    assert estimate(plan, "--deadline", "10s", "--nic", "400mbit", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["possible"], round(told["shortest_seconds"], 2)) == (False, 23.36)


def test_a_plan_that_copies_nothing_needs_no_throttle(cluster, plan, capsys):
    cluster.assignment[T0] = (3, 2)
    assert estimate(plan, "--rate", "1MB/s") == 0
    assert capsys.readouterr().out == "the plan copies nothing: no throttle is needed\n"


@pytest.mark.parametrize("words", [["--deadline", "1h"], ["--rate", "1MB/s"]])
def test_empty_logs_need_no_throttle(cluster, plan, capsys, words):
    """The answer was a throttle of 0 B/s, which no broker takes."""
    cluster.size_of = lambda _broker, _tp: 0
    assert estimate(plan, *words) == 0
    assert capsys.readouterr().out == "the plan copies nothing: no throttle is needed\n"
    assert estimate(plan, *words, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["throttle_bytes_per_s"], told["seconds"], told["brokers"]) == (None, 0, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one of the arguments --deadline --share --rate is required"),
        (["--deadline", "2h", "--share", "30%"], "not allowed with argument"),
        (["--share", "30%"], "--share: the rate of the NIC is not known; give it, such as --nic 1gbit"),
        (["--share", "130%", "--nic", "1gbit"], "--share: 130% is more than the whole NIC"),
        (["--deadline", "0s"], "--deadline: 0s: must be above 0"),
        (["--deadline", "2"], "--deadline: 2 has no unit"),
        (["--rate", "10mbit"], "--rate: 10mbit is a bit rate, not a byte rate"),
    ],
)
def test_wrong_words_are_exit_code_64(cluster, plan, capsys, words, said):
    try:
        status = estimate(plan, *words)
    except SystemExit as ended:
        status = ended.code
    assert status == 64
    assert said in capsys.readouterr().err
    assert cluster.calls == []


def test_a_plan_that_is_not_there_is_exit_code_64(cluster, capsys):
    assert estimate("/nowhere/plan.json", "--rate", "1MB/s") == 64
    assert "plan.json: it cannot be read: No such file" in capsys.readouterr().err


def test_the_command_config_reaches_the_client_and_a_wrong_one_stops_before_it(cluster, tmp_path, capsys):
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nclient.id=me\n")
    assert main(["throttle", "status", *HERE, "--command-config", str(path)]) == 0
    [(bootstrap, named)] = cluster.made
    assert (bootstrap, named["security"].protocol, named["security"].client_id) == ("fake:9092", "SSL", "me")
    path.write_text("sasl.kerberos.service.name=kafka\n")
    assert main(["throttle", "status", *HERE, "--command-config", str(path)]) == 64
    assert f"{path}:1: sasl.kerberos.service.name: cannot be mapped" in capsys.readouterr().err
    assert len(cluster.made) == 1


def _throttle(cluster):
    cluster.configs = {
        ConfigResource.broker(1): {LEADER_RATE: "10000000", FOLLOWER_RATE: "5000000"},
        ConfigResource.topic("t"): {LEADER_REPLICAS: "0:1,0:3", FOLLOWER_REPLICAS: "0:2"},
    }


def test_status_says_who_is_throttled_and_what_is_left_behind(cluster, capsys):
    _throttle(cluster)
    assert main(["throttle", "status", *HERE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["1", "10MB/s", "5MB/s"],
        ["2", "none", "none"],
        ["3", "none", "none"],
    ]
    assert lines[6].split() == ["t", "0:1,0:3", "0:2"]
    assert lines[-1] == "nothing moves: what is set throttles nothing now; `testbed throttle clear` removes it"


def test_the_throttle_of_a_broker_that_joined_empty_is_not_left_behind(cluster, capsys):
    """Nothing is reassigned then (KIP-73): `status` said that the throttle does nothing, `clear` did not ask."""
    cluster.configs = {
        ConfigResource.broker(3): {FOLLOWER_RATE: "5000000"},
        ConfigResource.topic("t"): {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"},
    }
    cluster.isr_lacks = frozenset({3})
    assert main(["throttle", "status", *HERE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 other partition has throttled replicas out of sync: t-0"
    assert main(["throttle", "clear", *HERE]) == 64
    why = "1 partition has throttled replicas out of sync: these go on unthrottled; --yes removes all throttles"
    assert why in capsys.readouterr().err
    assert len(cluster.configs) == 2
    cluster.isr_lacks = frozenset()
    assert main(["throttle", "clear", *HERE]) == 0
    assert cluster.configs == {}


def test_clear_says_what_was_there(cluster, capsys):
    _throttle(cluster)
    assert main(["throttle", "clear", *HERE]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "broker 1: leader.replication.throttled.rate was 10000000, removed",
        "broker 1: follower.replication.throttled.rate was 5000000, removed",
        "topic t: leader.replication.throttled.replicas was 0:1,0:3, removed",
        "topic t: follower.replication.throttled.replicas was 0:2, removed",
    ]
    assert cluster.configs == {}
    assert main(["throttle", "clear", *HERE]) == 0
    assert capsys.readouterr().out == "nothing is throttled\n"


def test_clear_is_no_success_where_a_broker_could_not_be_asked(cluster, capsys):
    cluster.broker_ids = (1, 2)
    assert main(["throttle", "clear", *HERE]) != 0
    told = capsys.readouterr()
    assert "broker 3 could not be asked whether it has a throttle: it has replicas, but is not alive" in told.err
    assert "nothing is throttled" not in told.out


def test_clear_needs_a_yes_while_something_moves_or_belongs_to_somebody(cluster, capsys):
    _throttle(cluster)
    cluster.running = {T0: (2, 3)}
    cluster.polls_needed = 99
    assert main(["throttle", "clear", *HERE]) == 64
    assert (
        "1 partition is being reassigned: without a throttle from then on; --yes removes all throttles"
        in capsys.readouterr().err
    )
    cluster.running = {}
    JournalFolder().write(ThrottleJournal.new("fake:9092", "fake-cluster", ()))
    assert main(["throttle", "clear", *HERE]) == 64
    assert f"process {Owner.this_process().pid} has set a throttle, and runs" in capsys.readouterr().err
    assert len(cluster.configs) == 2
    assert main(["throttle", "clear", *HERE, "--yes"]) == 0
    assert cluster.configs == {}


def test_watch_without_a_move_says_so(cluster, capsys):
    assert main(["throttle", "watch", *HERE]) == 0
    assert capsys.readouterr().out == "nothing is being reassigned\n"


def test_watch_waits_for_the_next_step_of_a_stored_move(cluster, capsys):
    job = Job.new("fake:9092", "fake-cluster", "batched", Plan({T0: (2, 3)}))
    JobFolder().write(job, JobControl())
    asked = []

    def ends(call, _args):
        if call == "reassignments":
            asked.append(call)
            if len(asked) == 3:
                JobFolder().remove(job.id)

    cluster.hook = ends
    assert main(["throttle", "watch", *HERE, "--interval", "1ms"]) == 0
    waiting = f"reassignment {job.id} has not ended: waiting for its next step"
    assert capsys.readouterr().out == f"{waiting}\nnothing is being reassigned\n"
    assert len(asked) == 3


def test_watch_once_of_a_move_that_never_makes_progress_is_exit_code_1(cluster, capsys):
    grows = iter(range(10**9))
    cluster.size_of = lambda broker, _tp: 0 if broker == 2 else 1000 * MB + 10 * MB * next(grows)
    cluster.running, cluster.polls_needed, cluster.isr_lacks = {T0: (2, 3)}, 99, frozenset({2})
    _throttle(cluster)
    cluster.configs[ConfigResource.broker(2)] = {FOLLOWER_RATE: "1000"}
    words = ["throttle", "watch", *HERE, "--once", "--interval", "20ms"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "0 of 1 partitions done" in out and "never makes progress" in out
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["event"], told["stuck"], told["unthrottled"]) == ("look", None, [])
