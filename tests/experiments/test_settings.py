import pytest

from testbed.errors import UsageError
from testbed.experiments.experiment import experiments, find_experiment, read_settings
from testbed.topology.find import find

TWO_NODE = find_experiment("kip73-two-node")


def test_defaults_profile_and_settings_in_this_order():
    assert read_settings(TWO_NODE, "ci", [])["rate"] == 10_000_000
    assert read_settings(TWO_NODE, "smoke", [])["rate"] == 5_000_000
    assert read_settings(TWO_NODE, "smoke", ["rate=2MiB/s"])["rate"] == 2 * 1024 * 1024


def test_every_mistake_is_told_at_once():
    with pytest.raises(UsageError) as caught:
        read_settings(TWO_NODE, "ci", ["rat=10MB/s", "fetch=tunned", "rate=10", "partitions"])
    told = str(caught.value)
    assert "did you mean rate?" in told
    assert "allowed are tuned, default; did you mean tuned?" in told
    assert "--set rate=10: " in told
    assert "--set partitions: expected NAME=VALUE" in told


def test_an_unknown_experiment_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean kip73-two-node"):
        find_experiment("kip73-twonode")


@pytest.mark.parametrize("name", experiments())
def test_every_experiment_takes_its_own_defaults_in_every_profile(name):
    experiment = find_experiment(name)
    for profile in ("smoke", "ci", "release"):
        settings = read_settings(experiment, profile, [])
        assert set(settings) == {p.name for p in experiment.parameters}
        experiment.overlay(settings)


def test_two_node_refuses_another_number_of_brokers():
    three = find("three-brokers")
    with pytest.raises(UsageError, match="exactly 2 brokers, three-brokers has 3"):
        TWO_NODE.check(three, {})


def test_tuned_is_three_broker_properties_and_default_is_none():
    assert set(TWO_NODE.overlay(read_settings(TWO_NODE, "ci", []))) == {
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.fetch.backoff.ms",
    }
    assert TWO_NODE.overlay(read_settings(TWO_NODE, "ci", ["fetch=default"])) == {}
