"""An operator's questions to a real cluster: estimate, watch, a move that is stuck, and a cluster with rights."""

import itertools
import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    UserScramCredentialUpsertion,
)

from testbed.cli.main import main
from testbed.kafka.node import FETCH_TUNED, SECURE_PORT
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.reassignment.batching.job import JobFolder
from testbed.reassignment.driver import Driver
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE
from testbed.throttle.journal import JournalFolder
from testbed.topology.find import find
from testbed.wait import wait_for
from tests.containers.conftest import ROOT, cli, left_of
from tests.kafka.certificates import authority, one_line, signed

pytestmark = pytest.mark.containers
MB = 10**6
PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster(own_state, engine):
    testbed = Testbed.up(find("three-brokers"), name="ci-operator", overlay=FETCH_TUNED)
    yield testbed
    testbed.close()
    remove(engine, "ci-operator")
    assert left_of("ci-operator") == []


def fill(testbed, topic, megabytes):
    """A topic on brokers 1 (the leader) and 3, with so much in each partition."""
    with testbed.admin() as admin:
        admin.create_topic(topic, {p: [1, 3] for p in range(PARTITIONS)})
    producer = Producer({"bootstrap.servers": ",".join(testbed.bootstrap), "acks": "all", "linger.ms": 20})
    for number in range(megabytes * 100):
        for partition in range(PARTITIONS):
            producer.produce(topic, bytes(10_000), partition=partition)
        producer.poll(0)
        if number % 200 == 0:
            assert producer.flush(30) == 0
    assert producer.flush(30) == 0


@contextmanager
def producing(testbed, topic, bytes_per_s):
    """Write to all partitions evenly, at this rate in all, until the block ends."""
    producer = Producer({"bootstrap.servers": ",".join(testbed.bootstrap), "acks": "all", "batch.size": 16384})
    stop = threading.Event()

    def produce():
        begun, sent = time.monotonic(), 0
        while not stop.wait(0.02):
            while sent < bytes_per_s * (time.monotonic() - begun):
                producer.produce(topic, bytes(1000), partition=sent // 1000 % PARTITIONS)
                sent += 1000
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        assert producer.flush(30) == 0


def plan_file(path, topic):
    """To brokers 2 and 3: one copy each, from 1 to 2."""
    plan = Plan({TopicPartition(topic, p): (2, 3) for p in range(PARTITIONS)})
    path.write_text(plan.to_json())
    return plan


def throttle(testbed, action, *words):
    """Run `testbed throttle …`; returns its exit code and what it printed, line by line."""
    told = cli("throttle", action, "--bootstrap", ",".join(testbed.bootstrap), *words)
    print(told.stdout, told.stderr)
    return told.returncode, told.stdout


def watching(testbed, *words):
    command = [sys.executable, "-m", "testbed.cli.main", "throttle", "watch"]
    command += ["--bootstrap", ",".join(testbed.bootstrap), "--json", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def ended(process):
    out = process.stdout.read()
    print(out)
    return process.wait(60), [json.loads(line) for line in out.splitlines()]


@pytest.mark.alone
def test_an_estimate_holds_and_the_move_is_followed_to_its_end(cluster, tmp_path):
    fill(cluster, "estimated", 30)
    plan = plan_file(tmp_path / "plan.json", "estimated")
    with producing(cluster, "estimated", MB // 5):
        status, out = throttle(
            cluster, "estimate", "--plan", str(tmp_path / "plan.json"), "--deadline", "17s", "--measure", "3s",
            "--nic", "400mbit", "--json",
        )  # fmt: skip
        estimate = json.loads(out)
        assert status == 0
        binds = [(line["broker"], line["direction"]) for line in estimate["brokers"] if line["bottleneck"]]
        assert binds == [(1, "transmit")]  # what broker 3 fetches passes through the leader, too
        with cluster.admin() as admin, Driver(admin, JournalFolder()) as driver:
            driver.execute(plan, estimate["throttle_bytes_per_s"])
            process = watching(cluster, "--interval", "1s")
            took_s = driver.follow(timeout_s=60, interval_s=0.1)
    status, looks = ended(process)
    assert (status, looks[-1]["done"]) == (0, True)
    print(f"observed {took_s:.1f} s, estimated {estimate['seconds']:.1f} s, KIP-73 {estimate['kip73_seconds']:.1f} s")
    assert estimate["seconds"] < took_s <= estimate["at_most_seconds"]
    rates = {(rate["broker"], rate["direction"]): rate for rate in looks[-3]["rates"]}
    assert rates[1, "transmit"]["quota_bytes_per_s"] == estimate["throttle_bytes_per_s"]
    assert rates[1, "transmit"]["bytes_per_s"] == pytest.approx(estimate["throttle_bytes_per_s"], rel=0.1)
    assert not any(look["stuck"] or look["too_low"] or look["unthrottled"] for look in looks)
    lags = [look["lag_bytes"] for look in looks]
    # What is written between two looks is behind at first; a second in which nothing is copied adds that much.
    assert all(later - earlier <= 2 * MB // 5 for earlier, later in itertools.pairwise(lags)), lags
    assert lags[-1] < lags[0]


def test_a_stuck_move_is_noticed_raised_and_what_was_there_is_put_back(cluster, tmp_path):
    fill(cluster, "stuck", 1)
    plan = plan_file(tmp_path / "plan.json", "stuck")
    low, most = MB // 2, 12 * MB
    with cluster.admin() as admin, Driver(admin, JournalFolder()) as driver:
        with producing(cluster, "stuck", 1 * MB):
            driver.execute(plan, low)
            status, out = throttle(cluster, "watch", "--once", "--json")
            assert status == 1
            too_low = {(share["broker"], share["direction"]) for share in json.loads(out)["too_low"]}
            assert too_low == {(1, "transmit"), (2, "receive")}
            process = watching(cluster, "--interval", "1s", "--patience", "4s", "--auto-raise", "12MB/s")
            told = []
            while not told or told[-1]["event"] != "raised":
                told.append(json.loads(process.stdout.readline()))
        driver.follow(timeout_s=60, interval_s=0.2)
        status, rest = ended(process)
        told += rest
        in_force = [admin.broker_configs(b).in_force(key) for b in (1, 2) for key in (LEADER_RATE, FOLLOWER_RATE)]
        assert in_force == [str(low)] * 4
    assert status == 0
    assert told[-1]["event"] == "restored"
    assert any(each["event"] == "look" and each["stuck"] for each in told)
    assert all(low < each["rate_bytes_per_s"] <= most for each in told if each["event"] == "raised")
    assert JournalFolder().ids() == []


def test_what_is_left_behind_is_shown_and_cleared(cluster):
    with cluster.admin() as admin:
        admin.create_topic("left", {0: [1]})
        admin.alter_configs(ConfigResource.broker(1), {LEADER_RATE: "1000"})
        admin.alter_configs(ConfigResource("broker", ""), {FOLLOWER_RATE: "2000"})
        admin.alter_configs(ConfigResource.topic("left"), {"leader.replication.throttled.replicas": "*"})
    status, out = throttle(cluster, "status", "--json")
    state = json.loads(out)
    assert (status, state["left_behind"]) == (0, True)
    assert [(b["leader_rate_bytes_per_s"], b["follower_rate_bytes_per_s"]) for b in state["brokers"]] == [
        (1000, 2000), (None, 2000), (None, 2000)
    ]  # fmt: skip
    assert state["topics"] == {"left": {"leader.replication.throttled.replicas": "*"}}
    status, out = throttle(cluster, "clear")
    assert (status, len(out.splitlines())) == (0, 3)
    assert throttle(cluster, "clear") == (0, "nothing is throttled\n")


def may_look(user):
    """What `docs/operating.md` says is enough for estimate, watch and status."""
    every_topic, whole = (
        ResourcePattern(ResourceType.TOPIC, "*"),
        ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"),
    )
    return [
        ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, resource)
        for operation in (ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS)
        for resource in (every_topic, whole)
    ]


def every_question_is_answered_to_who_may_ask_it(cluster, plan, ask, reader, admin):
    plan.write_text(Plan({TopicPartition("secured", p): (2,) for p in range(2)}).to_json())
    look = ("throttle", "status", *reader)
    with cluster.admin() as own:
        own.create_topic("secured", {p: [1] for p in range(2)})
        assert own._connection.client.create_acls(may_look("reader"))["failed"] == []
        wait_for(lambda: ask(*look), lambda told: told[0] == 0, 10, 0.2, "the rights to be known")
        own.alter_configs(ConfigResource.broker(1), {FOLLOWER_RATE: "1000"})
        wait_for(lambda: own.broker_configs(1).in_force(FOLLOWER_RATE), bool, 10, 0.1, "the rate to be there")
    estimate = ("throttle", "estimate", "--plan", str(plan), "--rate", "10MB/s", "--measure", "1s")
    assert ask(*estimate, *reader)[0] == 0
    assert ask("throttle", "watch", "--once", "--interval", "1s", *reader)[0] == 0
    code, _out, err = ask("throttle", "clear", *reader)
    assert code == 70 and "--operation AlterConfigs --cluster" in err, err
    code, out, err = ask("throttle", "clear", *admin)
    assert (code, out) == (0, "broker 1: follower.replication.throttled.rate was 1000, removed\n"), err
    execute = ("reassign", "execute", "--plan", str(plan), "--throttle", "10MB/s", "--reassignment-batch-size", "1")
    code, _out, err = ask(*execute, *reader)
    assert code == 70 and "AUTHORIZATION_FAILED" in err, err
    assert (JobFolder().ids(), JournalFolder().ids()) == ([], [])  # nothing was begun that would have to be put back
    assert ask("reassign", "verify", "--plan", str(plan), *reader)[0] == 1
    code, _out, err = ask(*execute, *admin)
    assert code == 0, err
    assert ask("reassign", "verify", "--plan", str(plan), *reader)[0] == 0
    assert ask("reassign", "list", *reader) == (0, "nothing is being reassigned\n", "")
    code, out, err = ask("reassign", "plan", "--drain", "2", "--topics", "secured", *reader)
    assert code == 0 and "secured" in out, err


def test_a_cluster_with_tls_logins_and_rights(cluster, tmp_path, capsys):
    ca, other = authority(), authority("another")
    addresses = [cluster.plan.data_ip(host.name) for host in cluster.topology.brokers]
    server = signed(ca, "brokers", addresses)
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    secure = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": one_line(server.key_pem()),
        "ssl.keystore.certificate.chain": one_line(server.pem),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "plain.sasl.jaas.config": f'{plain} user_admin="secret" user_reader="secret";',
        "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    }
    cluster.reconfigure(
        {f"listener.name.secure.{key}": value for key, value in secure.items()}
        | {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin;User:scram",  # ANONYMOUS: the brokers and the testbed itself
        }
    )
    bootstrap = ",".join(f"{address}:{SECURE_PORT}" for address in addresses)
    with cluster.admin() as admin:
        client = admin._connection.client
        assert client.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("scram", "SCRAM-SHA-512", "salted secret")]
        ) == {"scram": None}

    def ask(command, action, *words):
        code = main([command, action, "--bootstrap", bootstrap, *words])
        told = capsys.readouterr()
        assert "secret" not in told.out + told.err
        return code, told.out, told.err

    def status(*words):
        return ask("throttle", "status", *words, "--json")

    def login(user, password="secret", mechanism="PLAIN", trust=ca, timeout_ms=10000):
        module = plain if mechanism == "PLAIN" else plain.replace("plain.Plain", "scram.Scram")
        path = tmp_path / f"{user}.properties"
        path.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nrequest.timeout.ms={timeout_ms}\n"
            f'sasl.jaas.config={module} username="{user}" password="{password}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.certificates={one_line(trust.pem)}\n"
        )
        return "--command-config", str(path)

    code, out, err = status(*login("admin"))
    assert code == 0, err
    assert len(json.loads(out)["brokers"]) == 3
    code, out, err = status(*login("scram", "salted secret", "SCRAM-SHA-512"))
    assert code == 0, err
    code, out, err = status(*login("reader"))
    assert (code, err) == (
        70,
        "testbed throttle: describe the quorum: CLUSTER_AUTHORIZATION_FAILED (the user of this connection lacks a "
        "permission; grant it with `kafka-acls --add --allow-principal User:… --operation Describe --cluster`)\n",
    )
    every_question_is_answered_to_who_may_ask_it(cluster, tmp_path / "plan.json", ask, login("reader"), login("admin"))
    code, out, err = status(*login("admin", "wrong secret"))
    assert code == 70 and "SASL_AUTHENTICATION_FAILED" in err, err
    code, out, err = status(*login("admin", trust=other, timeout_ms=2000))
    assert code == 70 and "CERTIFICATE_VERIFY_FAILED" in err, err
    (tmp_path / "none.properties").write_text("request.timeout.ms=5000\n")
    code, out, err = status("--command-config", str(tmp_path / "none.properties"))
    assert code == 70 and "does not answer as a PLAINTEXT listener" in err, err
