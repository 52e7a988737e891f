"""What a node is given whose partitions lie in an object store."""

import subprocess

import pytest

from testbed.kafka import node
from testbed.kafka.capabilities import Capability, LacksCapability, of_software
from testbed.kafka.node import PROPERTIES, node_files, server_properties, with_credentials
from testbed.network.addresses import AddressPlan
from testbed.objectstore.server import CREDENTIALS_FILE as CREDENTIALS
from testbed.provision.plan_text import describe
from testbed.topology import load_document

SHARED = frozenset({Capability.SHARED_STORAGE})


def topology(properties=None):
    return load_document(
        {
            "name": "automq",
            "software": {"automq": {"path": "/opt/automq-1.6.0_kafka-3.9.0.tgz"}},
            "kafka": {"properties": properties or {}},
            "defaults": {"nic": {"rate": "400mbit"}},
            "hosts": {"b1": {"role": "both"}, "b2": {"role": "broker"}, "s1": {"role": "objectstore"}},
        }
    )


def rendered(properties=None, overlay=None, host="b2"):
    found = topology(properties)
    plan = AddressPlan(0, tuple(host.name for host in found.hosts))
    return server_properties(
        found, found.host(host), plan, overlay, able=SHARED, cluster_id="4L6g3nShT-eMCtK--X86sw"
    ), plan


def test_every_property_that_automq_needs():
    found, plan = rendered()
    where = f"region=us-east-1&endpoint=http://{plan.data_ip('s1')}:9000&pathStyle=true"
    assert {key: value for key, value in found.items() if key.startswith(("s3.", "elastic", "cluster", "auto"))} == {
        "elasticstream.enable": "true",
        "s3.data.buckets": f"0@s3://testbed-automq-data?{where}",
        "s3.ops.buckets": f"1@s3://testbed-automq-ops?{where}",
        "s3.wal.path": f"0@s3://testbed-automq-data?{where}",
        "s3.telemetry.metrics.exporter.uri": "prometheus://?host=127.0.0.1&port=8890",
        "cluster.id": "4L6g3nShT-eMCtK--X86sw",
        "autobalancer.controller.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "auto.create.topics.enable": "false",
    }
    assert {found[key] for key in node.ONE_REPLICA} == {"1"}
    assert found["controller.quorum.voters"] == f"1@{plan.data_ip('b1')}:9094"


def test_the_balancer_can_be_asked_for_and_more_replicas_cannot():
    found, _plan = rendered({"autobalancer.controller.enable": "true"}, {"offsets.topic.replication.factor": "3"})
    assert found["autobalancer.controller.enable"] == "true"
    assert found["offsets.topic.replication.factor"] == "1"


def test_apache_kafka_is_given_none_of_it():
    found = topology()
    plan = AddressPlan(0, tuple(host.name for host in found.hosts))
    plain = server_properties(found, found.host("b1"), plan, cluster_id="x")
    assert not [key for key in plain if key.startswith(("s3.", "elasticstream", "cluster.", "autobalancer"))]
    assert plain["offsets.topic.replication.factor"] == "2"


def test_a_node_that_formats_itself_is_given_no_formatted_folder():
    assert set(node_files({"a": "b"}, "meta", None)) == {PROPERTIES}
    assert len(node_files({"a": "b"}, "meta", b"checkpoint")) == 3


def test_a_plan_is_told_without_a_distribution():
    told = describe(topology())
    assert "Kafka AutoMQ (/opt/automq-1.6.0_kafka-3.9.0.tgz)" in told
    assert "  elasticstream.enable=true" in told


def started(tmp_path, text):
    """Run the command with credentials from a file of this test's."""
    file = tmp_path / "credentials"
    if text is not None:
        file.write_text(text)
    command = with_credentials(
        ["sh", "-c", 'printf "%s %s %s\\n" "$KAFKA_S3_ACCESS_KEY" "$KAFKA_S3_SECRET_KEY" "$*"', "java", "a b"]
    )
    return subprocess.run(
        [word.replace(CREDENTIALS, str(file)) for word in command], capture_output=True, text=True, check=False
    )


def test_credentials_are_in_the_environment_exactly_as_they_are_in_the_file(tmp_path):
    done = started(tmp_path, "access_key=an id\nsecret_key=k$y'\"=/+`\\\n")
    assert (done.returncode, done.stdout) == (0, "an id k$y'\"=/+`\\ a b\n")


@pytest.mark.parametrize("text", [None, "", "access_key=x\n", "secret_key=x\n"])
def test_without_credentials_nothing_is_started_and_the_log_says_why(tmp_path, text):
    done = started(tmp_path, text)
    assert (done.returncode, done.stdout) == (78, "")
    assert "has no access_key and secret_key of the object store" in done.stderr


def test_what_the_software_can_do_is_known_from_the_topology():
    assert of_software(topology()) == SHARED
    apache = topology().with_kafka_version("4.3.1")
    assert Capability.THROTTLES_REPLICATION in of_software(apache)


@pytest.mark.parametrize("name", ["kip73-two-node", "kip73-nic-bound", "kip455-example", "kip435-exchange"])
def test_an_experiment_that_needs_what_is_not_there_is_refused_before_anything_is_made(name):
    from testbed.experiments.experiment import find_experiment

    with pytest.raises(LacksCapability) as caught:
        find_experiment(name).fits(topology(), {})
    assert str(caught.value).startswith(f"{name} is not possible with AutoMQ, the software of automq, which lacks ")
    assert Capability.THROTTLES_REPLICATION in caught.value.missing
