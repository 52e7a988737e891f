"""A move's model and bound follow from each host's own properties, or the run is refused."""

from dataclasses import replace

import pytest

from testbed.errors import UsageError
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.quota_settings import declared, in_force, quota_settings
from testbed.throttle.quota_window import WindowSettings
from testbed.topology.find import find


def topology(**properties):
    """Return two brokers; `b1` and `b2` have these properties of their own."""
    found = find("two-brokers")
    hosts = [replace(host, properties={**host.properties, **properties.get(host.name, {})}) for host in found.hosts]
    return replace(found, hosts=tuple(hosts))


def test_without_properties_they_are_kafkas_defaults():
    found = quota_settings({"b1": {}, "b2": {}})
    assert (found.fetchers, found.response_max_bytes) == ({"b1": 1, "b2": 1}, 10 * 1024 * 1024)
    assert (found.window.samples, found.window.sample_s, found.window.period_s) == (11, 1.0, 11.5)


def test_each_host_has_its_own_fetchers():
    found = quota_settings(declared(topology(b2={"num.replica.fetchers": "4"}), {}))
    assert found.fetchers == {"b1": 1, "b2": 4}


def test_each_host_fetches_with_its_own_sockets():
    key = "replica.socket.receive.buffer.bytes"
    found = quota_settings(declared(topology(b1={key: "-1"}, b2={key: "1048576"}), {}))
    assert found.buffers == {"b2": 1 << 20}
    assert quota_settings({"b1": {}}).buffers == {"b1": 65_536}


def test_a_window_that_all_brokers_have_is_the_runs():
    both = {"replication.quota.window.num": "6", "replication.quota.window.size.seconds": "2"}
    assert quota_settings(declared(topology(b1=both, b2=both), {})).window == WindowSettings(6, 2.0)


@pytest.mark.parametrize(
    ("key", "value", "default"),
    [
        ("replica.fetch.response.max.bytes", "1048576", "10485760"),
        ("replication.quota.window.num", "31", "11"),
        ("replication.quota.window.size.seconds", "2", "1"),
    ],
)
def test_hosts_that_differ_are_refused_by_name_before_anything_is_made(key, value, default):
    experiment = find_experiment("kip73-two-node")
    settings = read_settings(experiment, "smoke", ["fetch=default"])
    with pytest.raises(UsageError, match=f"{key} is {default} on b1 and {value} on b2: .*kafka.properties"):
        experiment.fits(topology(b2={key: value}), settings)
    experiment.fits(topology(b1={key: value}, b2={key: value}), settings)


def test_what_an_experiment_sets_on_all_brokers_is_no_difference():
    experiment = find_experiment("kip73-two-node")
    settings = read_settings(experiment, "smoke", ["fetch=tuned"])
    experiment.fits(topology(b2={"replica.fetch.response.max.bytes": "2000000"}), settings)


def test_brokers_are_asked_what_is_in_force():
    class Changed:
        def broker_settings(self, broker, keys):
            return {"num.replica.fetchers": str(broker), "replication.quota.window.num": "11"}

    assert quota_settings(in_force(Changed(), {"b1": 1, "b2": 3})).fetchers == {"b1": 1, "b2": 3}


def test_a_value_that_is_no_number_is_refused():
    with pytest.raises(UsageError, match="b1: num.replica.fetchers is 'many'; it must be a whole number above 0"):
        quota_settings({"b1": {"num.replica.fetchers": "many"}})
