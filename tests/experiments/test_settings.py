import pytest

from testbed.errors import UsageError
from testbed.experiments.experiment import experiments, find_experiment, read_settings, require_once
from testbed.experiments.experiment_run import RunRequest, run
from testbed.topology import loads
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


def test_a_parameter_that_is_set_twice_is_refused_with_both_values():
    """The last value counted, without a word."""
    require_once(["rate=5MB/s", "partitions=10", "partitions"])
    with pytest.raises(UsageError, match="^partitions is set twice: 10 and 20; leave one out$"):
        require_once(["partitions=10", "rate=5MB/s", "partitions=20"])
    with pytest.raises(UsageError, match="^rate is set twice: 5MB/s and 6MB/s; leave one out$"):
        run(RunRequest("kip73-two-node", ("rate=5MB/s", "rate=6MB/s")), print)


def test_an_experiment_without_parameters_says_so():
    """The message ended with `only`, and named nothing."""
    with pytest.raises(UsageError) as caught:
        read_settings(find_experiment("kip455-cancel"), "ci", ["rate=5MB/s"])
    assert str(caught.value) == "--set rate=5MB/s: kip455-cancel has no parameters"


def test_a_list_of_values_is_refused_with_the_command_that_takes_it():
    with pytest.raises(UsageError) as caught:
        read_settings(TWO_NODE, "ci", ["partitions=1,10", "rate=nothing,at all"])
    partitions, rate = sorted(str(caught.value).splitlines())
    assert partitions.endswith("10000; a run has one value, `testbed sweep` makes runs with each of several")
    assert "sweep" not in rate


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


def fitted(name, *given, on=None):
    """Check these settings on the experiment's own topology, or on another."""
    experiment = find_experiment(name)
    experiment.fits(on or find(experiment.topology), read_settings(experiment, "ci", given))


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("kip73-two-node", "rate=60MB/s", "60MB/s through the NIC of b2, receive, which carries 47.8MB/s"),
        ("kip73-live-change", "raised=60MB/s", "a throttle of 60MB/s lets 60MB/s through the NIC of b2"),
        ("kip73-one-to-two", "rate=60MB/s", "60MB/s through the NIC of b1, transmit"),
        ("kip73-two-node", "partitions=5000", "leader.replication.throttled.replicas would be 33889 bytes"),
        ("kip73-one-to-two", "partitions=3000", "leader.replication.throttled.replicas would be "),
        ("kip73-many", "partitions=10000", None),
        ("kip73-mixed-volume", "partitions=10000", None),
        ("kip73-two-node", "rate=47MB/s", None),
        ("kip73-nic-bound", "rate=60MB/s", None),
        ("kip435-exchange", "rate=60MB/s", None),
    ],
)
def test_what_a_nic_or_a_list_cannot_carry_is_refused_before_anything_is_provisioned(name, given, why):
    if why is None:
        fitted(name, given)
        return
    with pytest.raises(UsageError) as caught:
        fitted(name, given)
    assert why in str(caught.value)


def test_a_nic_that_is_as_slow_already_is_refused_before_anything_is_provisioned():
    """The run filled its topics first, and ended with this error then."""
    with pytest.raises(UsageError, match="rate=400mbit would slow nothing down: b1 has 400mbit"):
        fitted("kip73-nic-bound", "nic=400mbit", "rate=100MB/s")
    fitted("kip73-nic-bound", "nic=399mbit", "rate=100MB/s")


def test_in_steps_the_list_of_the_leaders_is_longer():
    fitted("kip73-two-node", "partitions=3000")
    with pytest.raises(UsageError, match="would be .* bytes, and Kafka takes 32767 at most"):
        fitted("kip73-two-node", "partitions=3000", "mode=batched")


def test_a_nic_may_be_slower_than_the_throttle_where_its_broker_has_less_to_carry():
    slow = loads(
        "{name: t, kafka: {version: 4.3.1}, defaults: {nic: {rate: 60mbit}},"
        " hosts: {b1: {role: both}, b2: {role: broker}, b3: {role: broker, nic: {rate: 400mbit}}}}"
    )
    fitted("kip73-two-to-one", "rate=10MB/s", on=slow)
    with pytest.raises(UsageError, match=r"10MB/s through the NIC of b1, transmit, which carries 7\.17MB/s"):
        fitted("kip73-one-to-two", "rate=10MB/s", on=slow)


def test_what_crosses_an_uplink_is_the_sum_of_its_hosts():
    racks = loads(
        "{name: t, racks: {r1: {}, r2: {uplink: {rate: 100mbit}}}, kafka: {version: 4.3.1},"
        " defaults: {nic: {rate: 400mbit}},"
        " hosts: {b1: {role: both, rack: r1}, b2: {role: broker, rack: r2}, b3: {role: broker, rack: r2}}}"
    )
    fitted("kip73-one-to-two", "rate=10MB/s", on=racks)
    with pytest.raises(UsageError, match=r"20MB/s through the uplink of r2, receive, which carries 12MB/s"):
        fitted("kip73-one-to-two", "rate=20MB/s", on=racks)


@pytest.mark.parametrize(
    ("given", "partition", "fetch"),
    [
        ((), None, None),
        (("partitions=32",), None, None),
        (("partitions=25",), str(-(-(32 << 20) // 25)), None),
        (("response=60MiB",), None, str(60 << 20)),
        (("response=60MiB", "partitions=2"), str(30 << 20), str(60 << 20)),
    ],
)
@pytest.mark.parametrize("name", ["kip73-fetch-size", "kip73-mixed-volume"])
def test_a_response_is_as_large_as_declared_with_any_number_of_partitions(name, given, partition, fetch):
    experiment = find_experiment(name)
    found = experiment.overlay(read_settings(experiment, "ci", ["response=32MiB", *given]))
    assert (found.get("replica.fetch.max.bytes"), found.get("fetch.max.bytes")) == (partition, fetch)


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("kip73-two-node-produce", ["rate=40MB/s", "inbound=10MB/s"], "and clients need 10MB/s of that"),
        ("kip73-bounce", ["rate=50MB/s", "inbound=20MB/s"], "data0 of b1 needs 127% of what it carries, transmit"),
        ("kip435-exchange", ["rate=80MB/s", "inbound=40MB/s"], "lower inbound to 20MB/s or less"),
        ("s3-reassign", ["inbound=20MB/s"], "data0 of b1 needs 170% of what it carries, transmit"),
        ("s3-reassign", ["inbound=30MB/s"], "less than a tenth is left for the move; lower inbound to 10MB/s or less"),
        ("s3-reassign", ["storage=tiered", "inbound=8MB/s"], "data0 of b1 needs 102% of what it carries"),
        ("cold-read", ["inbound=30MB/s"], "data0 of b1 needs 255% of what it carries"),
        ("scale-out", ["inbound=200MB/s"], "of what it carries, transmit: less than a tenth is left"),
        ("scale-in", ["inbound=200MB/s"], "of what it carries, transmit: less than a tenth is left"),
        ("kip73-two-node-produce", ["rate=30MB/s", "inbound=10MB/s"], None),
        ("kip73-bounce", ["rate=50MB/s", "inbound=10MB/s"], None),
        ("s3-reassign", ["inbound=10MB/s"], None),
        ("s3-reassign", ["inbound=30MB/s", "compression=lz4", "redundancy=0.8"], None),
        ("scale-out", ["inbound=10MB/s"], None),
        ("scale-in", ["inbound=10MB/s"], None),
    ],
)
def test_a_load_that_leaves_no_nic_for_the_move_is_refused_before_anything_is_provisioned(name, given, why):
    """The run was made, the move did not end in its time, and `move-done` failed of a healthy Kafka."""
    if why is None:
        fitted(name, *given)
        return
    with pytest.raises(UsageError) as caught:
        fitted(name, *given)
    assert why in str(caught.value)


def test_clients_do_not_use_a_nic_for_replication():
    apart = loads(
        "{name: t, kafka: {version: 4.3.1}, defaults: {nics: {data0: {rate: 400mbit}, "
        "repl0: {rate: 400mbit, use: replication}}}, hosts: {b1: {role: both}, b2: {role: broker}}}"
    )
    fitted("kip73-two-node-produce", "rate=40MB/s", "inbound=10MB/s", on=apart)


@pytest.mark.parametrize(
    ("name", "more"), [("kip73-fetch-size", ()), ("kip73-mixed-volume", ("lag=40s", "rate=3MB/s"))]
)
def test_a_response_that_no_heap_holds_is_refused_before_anything_is_provisioned(name, more):
    """A follower that received one of 1 GiB ran out of heap, and `move-done` failed."""
    fitted(name, *more, "response=128MiB")
    with pytest.raises(UsageError, match=r"1GiB whole, and the JVM of b1 has 512MiB of heap: give response=128MiB or"):
        fitted(name, *more, "response=1GiB")
    fitted(name, *more, "response=1GiB", on=find("two-brokers").with_heap(4 << 30))
