"""A cluster of the fake AutoMQ: how one is brought up, and what is refused. It proves nothing about AutoMQ."""

import pytest

from results.criteria.catalogue.handover import judge_handover
from testbed.handover.run import watched_move
from testbed.kafka.node import DATA_DIR, LOG, PROPERTIES
from testbed.kafka.types import TopicPartition
from testbed.objectstore.server import CREDENTIALS_FILE as CREDENTIALS
from testbed.provision import state as states
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.reassignment.plan import Plan
from testbed.topology import load_document
from testbed.workload.preload import audit
from tests.containers.conftest import cli
from tests.fakes.automq import fake_automq

pytestmark = [pytest.mark.containers, pytest.mark.store]
NAME = "ci-automq"
TOPIC = "orders-v2"


@pytest.fixture(scope="module")
def fake(own_state, engine, tmp_path_factory):
    path = fake_automq(tmp_path_factory.mktemp("automq"))
    topology = load_document(
        {
            "name": "automq-fake",
            "software": {"automq": {"path": str(path)}},
            "defaults": {"nic": {"rate": "400mbit"}},
            "hosts": {"b1": {"role": "both"}, "b2": {"role": "broker"}, "s1": {"role": "objectstore"}},
        }
    )
    told = []
    testbed = Testbed.up(topology, name=NAME, progress=told.append)
    testbed.told = told
    yield testbed
    testbed.close()
    remove(engine, NAME)


def read(testbed, host, path):
    return testbed.hosts[host].run(["cat", path]).stdout


def test_it_is_up_with_a_version_that_says_that_it_is_a_fake(fake):
    (version,) = set(fake.state.kafka.values())
    assert version.startswith("automq-0.0.0-fake+")
    assert fake.state.digests[version] == fake.software.kafka(version).digest
    with fake.admin() as admin:
        assert len(admin.cluster().brokers) == 2
    # Apache Kafka tells no setting that it does not know; that is said, and the others are compared.
    unknown = "the brokers do not report autobalancer.controller.enable, elasticstream.enable: not checked"
    assert [line for line in fake.told if "not checked" in line] == [unknown]
    with fake.admin() as admin:
        given = admin.broker_settings(2, ["autobalancer.controller.enable", "offsets.topic.replication.factor"])
    assert given == {"offsets.topic.replication.factor": "1"}


def test_its_properties_are_on_its_hosts_and_it_has_formatted_itself(fake):
    for host in ("b1", "b2"):
        properties = dict(line.split("=", 1) for line in read(fake, host, PROPERTIES).splitlines())
        assert properties["elasticstream.enable"] == "true"
        assert properties["cluster.id"] == fake.state.cluster_id
        assert f"endpoint={fake.objectstore.endpoint}&" in properties["s3.data.buckets"]
        assert f"cluster.id={fake.state.cluster_id}\n" in read(fake, host, f"{DATA_DIR}/meta.properties")
    with fake.admin() as admin:
        admin.create_topic("one", {0: [1]})


def test_credentials_are_in_the_process_and_nowhere_where_they_could_be_seen(fake):
    secret = fake.objectstore.credentials.secret_key
    assert len(secret) > 8
    for host in ("b1", "b2"):
        shell = fake.hosts[host]
        assert shell.run(["stat", "-c", "%a %U", CREDENTIALS]).stdout.split() == ["600", "root"]
        pid = fake.node(host).pid()
        environment = shell.run(f"tr '\\0' '\\n' < /proc/{pid}/environ").stdout
        assert f"KAFKA_S3_SECRET_KEY={secret}\n" in environment
        commands = shell.run("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'").stdout
        assert "kafka.Kafka" in commands
        for seen in (commands, read(fake, host, PROPERTIES), read(fake, host, LOG)):
            assert secret not in seen
    assert secret not in (states.folder(NAME) / "state.json").read_text()
    assert secret not in " ".join(fake.told)


def test_a_throttled_experiment_is_refused_in_words_and_nothing_is_changed(fake):
    pids = {host: fake.node(host).pid() for host in ("b1", "b2")}
    told = cli("run", "kip73-two-node", "--on", NAME)
    assert told.returncode != 0
    assert "kip73-two-node is not possible with AutoMQ, the software of automq-fake, which lacks " in told.stderr
    assert "throttles-replication" in told.stderr
    assert {host: fake.node(host).pid() for host in ("b1", "b2")} == pids


def test_a_move_is_done_when_the_target_leads_and_steps_that_nobody_tells_are_inconclusive(fake):
    tps = [TopicPartition(TOPIC, partition) for partition in range(4)]
    with fake.admin() as admin:
        admin.create_topic(TOPIC, {tp.partition: [1] for tp in tps})
    found = watched_move(fake, Plan(dict.fromkeys(tps, (2,))), 7, timeout_s=30.0)
    assert found.why == ""
    verdicts = {each.name.removeprefix("handover-"): each for each in judge_handover(found.seen)}
    print("\n".join(f"{name}: {each.verdict}: {each.observed}: {each.why}" for name, each in verdicts.items()))
    known, unknown = (
        ("accepted", "elected", "produced", "fetched"),
        ("seen", "closed", "opened", "clean"),
    )
    assert {name: verdicts[name].verdict for name in known} == dict.fromkeys(known, "pass")
    assert {name: (verdicts[name].verdict, verdicts[name].observed) for name in unknown} == dict.fromkeys(
        unknown, ("inconclusive", None)
    )
    assert "looked for `partition orders-v2-0 is closed, cost … ms`" in verdicts["closed"].why
    assert found.seen.software.startswith("automq-0.0.0-fake")
    with fake.admin() as admin:
        assert {state.leader for state in admin.partitions([TOPIC]).values()} == {2}
    told = audit(fake.bootstrap, (), found.written)
    assert (told.lost, told.corrupt, told.duplicated) == (0, 0, 0)
    assert sum(each.acked for each in found.written) > 0
