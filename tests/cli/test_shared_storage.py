"""What `testbed reassign` and `throttle` refuse where a running cluster keeps its partitions in an object store."""

import pytest

from testbed.cli.main import main
from testbed.kafka.capabilities import SHARED_STORAGE_KEY
from testbed.kafka.errors import KafkaError

HERE = ["--bootstrap", "fake:9092"]
CHANGES = {"alter_configs", "alter_reassignments"}


@pytest.fixture(autouse=True)
def shared(cluster):
    cluster.settings = {SHARED_STORAGE_KEY: "true"}


REFUSED = {
    "a throttle": ["reassign", "execute", *HERE, "--throttle", "5MB/s", "--plan"],
    "a throttle ": ["throttle", "estimate", *HERE, "--deadline", "1h", "--plan"],
    "--auto-raise": ["throttle", "watch", *HERE, "--auto-raise", "5MB/s"],
    "cancelling a reassignment": ["reassign", "cancel", *HERE, "--all"],
    "a replication factor of 2": ["reassign", "plan", *HERE, "--replication-factor", "2"],
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_be_accepted_and_not_done_is_refused_before_anything_changes(cluster, plan, capsys, what):
    words = REFUSED[what]
    assert main([*words, plan] if words[-1] == "--plan" else words) == 70
    said = capsys.readouterr().err
    assert f"{what.strip()} is not possible with the cluster at fake:9092" in said
    assert SHARED_STORAGE_KEY in said
    assert not CHANGES & {call for call, _ in cluster.calls}


@pytest.mark.parametrize("settings", [{}, {SHARED_STORAGE_KEY: "false"}])
def test_apache_kafka_is_let(cluster, capsys, settings):
    cluster.settings = settings
    assert main(REFUSED["cancelling a reassignment"]) == 0
    assert "0 reassignments cancelled" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "code"), [("CLUSTER_AUTHORIZATION_FAILED", 0), ("NETWORK_EXCEPTION", 70)])
def test_who_may_not_ask_goes_on_and_who_got_no_answer_does_not(cluster, capsys, name, code):
    def hook(call, _args):
        if call == "broker_settings":
            raise KafkaError("describe the configuration of broker 1", name)

    cluster.hook = hook
    assert main(REFUSED["cancelling a reassignment"]) == code
    assert (name in capsys.readouterr().err) == (code == 70)
