"""Where logs lie: what is refused, what topics are made with, and what is waited for."""

from dataclasses import replace

import pytest

from results.contract.relocation import LOCAL_MOST
from results.criteria.catalogue.nic_conservation import CONSERVATION_TOLERANCE
from results.criteria.catalogue.uploaded_remainder import FAR, most_uploaded, threshold_bytes
from testbed.errors import UsageError
from testbed.experiments.experiment import find_experiment, number, read_settings
from testbed.experiments.kip73_layouts import two_node
from testbed.experiments.storage import (
    SEGMENT_BYTES,
    check_storage,
    least_bytes,
    log_bytes_of,
    mostly_remote,
    topic_settings,
)
from testbed.runner.variant import Variant, resolve
from testbed.suites.suite import find_suite
from testbed.topology.find import find
from testbed.topology.host import AutomqSource


def test_disk_is_kafkas_own_and_tiered_keeps_as_little_as_it_can():
    assert topic_settings("disk") == topic_settings("automq") == {}
    tiered = topic_settings("tiered")
    assert tiered["remote.storage.enable"] == "true"
    assert tiered["local.retention.bytes"] == "1"
    assert topic_settings("tiered", 5_000_000)["local.retention.bytes"] == "5000000"


def test_so_few_bytes_that_their_last_segments_are_a_tenth_are_refused():
    experiment = find_experiment("s3-reassign")
    least = least_bytes("tiered", 100)
    # The active segments against all that is in the store by then: all but those.
    assert pytest.approx(LOCAL_MOST * (least - 100 * SEGMENT_BYTES)) == 100 * SEGMENT_BYTES
    few = read_settings(experiment, "ci", ["storage=tiered", "partitions=100", "size=900MB"])
    with pytest.raises(UsageError, match=r"100 tiered partitions .* 1048576kB|100 tiered partitions"):
        experiment.overlay(few)
    experiment.overlay({**few, "storage": "disk"})
    experiment.overlay({**few, "size": least})


def test_a_topology_must_be_able_to_hold_them():
    plain, s3 = find("two-brokers"), find("s3")
    check_storage("disk", plain)
    check_storage("disk", s3)
    check_storage("tiered", s3)
    with pytest.raises(UsageError, match="two-brokers has none"):
        check_storage("tiered", plain)
    with pytest.raises(UsageError, match="runs Apache Kafka"):
        check_storage("automq", s3)
    hosts = tuple(replace(host, kafka_version=None) if host.role.runs_kafka else host for host in s3.hosts)
    automq = replace(s3, hosts=hosts, remote_storage=None, automq=AutomqSource())
    check_storage("automq", automq)
    with pytest.raises(UsageError, match="runs AutoMQ"):
        check_storage("tiered", replace(automq, name="other"))


@pytest.mark.parametrize(
    ("name", "topology"),
    [
        ("s3-reassign", "automq"),
        ("cold-read", "automq"),
        ("scale-out", "automq"),
        ("scale-in", "automq-three-brokers"),
    ],
)
def test_a_run_on_automq_has_its_topology_without_being_told(name, topology):
    resolved = resolve(Variant("a", name, settings=("storage=automq",)))
    assert resolved.topology.name == topology
    assert resolve(Variant("a", name, settings=("storage=disk",))).topology.automq is None


def test_a_release_of_kafka_for_a_run_on_automq_is_refused_with_the_remedy():
    with pytest.raises(UsageError, match="automq runs Apache Kafka here: leave --kafka out, which names one"):
        resolve(Variant("a", "s3-reassign", settings=("storage=automq",), kafka="4.2.1"))
    with pytest.raises(UsageError, match="automq runs AutoMQ: set storage=automq, or use another topology"):
        resolve(Variant("a", "s3-reassign", settings=("storage=disk",), topology="automq"))


def test_it_is_refused_before_anything_is_made():
    with pytest.raises(UsageError, match="two-brokers has none"):
        resolve(Variant("a", "s3-reassign", settings=("storage=tiered",), topology="two-brokers"))
    with pytest.raises(UsageError, match="three-brokers has none: .* or use the topology s3-three-brokers"):
        resolve(Variant("a", "kip73-one-to-two", settings=("storage=tiered",)))
    resolve(Variant("a", "kip73-one-to-two", settings=("storage=tiered",), topology="s3-three-brokers"))
    with pytest.raises(UsageError, match="exactly 3 brokers, s3 has 2: use the topology s3-three-brokers"):
        resolve(Variant("a", "kip73-one-to-two", settings=("storage=tiered",), topology="s3"))
    with pytest.raises(UsageError, match="exactly 3 brokers, automq has 2: use the topology automq-three-brokers"):
        resolve(Variant("a", "scale-in", settings=("storage=automq",), topology="automq"))


def test_a_log_is_larger_than_its_values_as_a_like_one_is():
    assert log_bytes_of(1000, 100, 110.0) == 1100
    assert log_bytes_of(1000, 100, None) == 1000
    assert log_bytes_of(1000, 100, 90.0) == 1000  # a part of it was not read yet


def test_a_throttle_has_as_much_to_hold_back_on_tiered_logs_as_on_disk():
    experiment = find_experiment("kip73-two-node")
    settings = read_settings(experiment, "ci", ["rate=2MB/s", "partitions=20"])
    on_disk = two_node(settings, ["b1", "b2"])
    assert mostly_remote(on_disk, "disk") == (on_disk, 0)
    tiered, local = mostly_remote(on_disk, "tiered")
    assert local == sum(group.bytes for group in on_disk.throttled)
    assert local + 20 * SEGMENT_BYTES < LOCAL_MOST * sum(group.bytes for group in tiered.throttled)
    assert tiered.control == on_disk.control
    resolve(Variant("a", "kip73-two-node", settings=("storage=tiered",), topology="s3"))
    with pytest.raises(UsageError, match="two-brokers has none"):
        resolve(Variant("a", "kip73-two-node", settings=("storage=tiered",)))
    with pytest.raises(UsageError, match="no parameter 'storage'"):
        resolve(Variant("a", "kip73-two-node-produce", settings=("storage=tiered",)))


def test_a_scenario_of_a_handover_has_so_many_bytes_that_a_second_upload_of_them_shows():
    experiment, brokers = find_experiment("s3-reassign"), find("automq").to_document()["hosts"]
    block, judged = threshold_bytes(brokers["b1"]["kafka"]), 0
    for profile, cases in find_suite("s3").profiles.items():
        for case in cases:
            settings = read_settings(experiment, profile, case.settings) if case.experiment == "s3-reassign" else {}
            if settings.get("storage") == "automq" and settings["source"] != "killed":
                most = most_uploaded(block, number(settings, "inbound"), covered_s=20.0)
                assert (1 + CONSERVATION_TOLERANCE) * most <= FAR * number(settings, "size"), (profile, case.name)
                judged += 1
    assert judged == 5


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
def test_each_profile_moves_enough_to_show_a_second_upload(profile):
    settings = read_settings(find_experiment("s3-reassign"), profile, ["storage=automq"])
    block = threshold_bytes(find("automq").to_document()["hosts"]["b1"]["kafka"])
    most = most_uploaded(block, number(settings, "inbound"), covered_s=20.0)
    assert (1 + CONSERVATION_TOLERANCE) * most <= FAR * number(settings, "size")


def test_a_killed_broker_leaves_a_majority_of_controllers():
    """Without one nothing is elected: the move would never be done, and AutoMQ be blamed."""
    experiment, ready = find_experiment("s3-reassign"), find("automq")
    killed = read_settings(experiment, "ci", ["storage=automq", "source=killed"])
    experiment.fits(ready, killed)
    turned = replace(ready, hosts=ready.hosts[::-1])  # the second broker is the controller
    with pytest.raises(UsageError, match="the run kills b1, and without it automq has no majority of controllers"):
        experiment.fits(turned, killed)
    experiment.fits(turned, {**killed, "source": "kept"})
