"""A capture of a cluster: what is read, how it is made smaller, and the files that come of it."""

import math
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import TestbedError, UsageError
from testbed.incidents.capture import (
    BrokerOutage,
    CapturedCluster,
    CapturedTopic,
    anonymised,
    capture,
    usable_names,
)
from testbed.incidents.captured_file import INCIDENT, incident_document, write_capture
from testbed.incidents.read import load
from testbed.incidents.scale_down import merged_brokers, scale_down
from testbed.kafka.errors import KafkaError, LogDirError, TopicConfigsError, UnreachableError
from testbed.kafka.types import ConfigResource, ReplicaLog, TopicPartition
from testbed.reassignment.plan import Plan
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from tests.fakes.admin import FakeAdmin

KEY = b"k" * 32
WHEN = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def tp(name, number):
    return TopicPartition(name, number)


@pytest.fixture
def admin():
    fake = FakeAdmin({tp("orders", 0): (1, 2), tp("orders", 1): (2, 1), tp("quiet", 0): (3,)})
    fake.polls_needed = 1000
    fake.size_of = lambda _broker, tp: 1000 * (tp.partition + 1)
    fake.alter_configs(ConfigResource.broker(2), {LEADER_RATE: "5000000"})
    fake.alter_configs(ConfigResource.topic("orders"), {"min.insync.replicas": "2", "follower.secret": "x"})
    fake.alter_reassignments({tp("orders", 0): (3, 2)})
    fake.calls.clear()
    return fake


def test_it_has_what_moves_its_sizes_and_the_lowest_rate_and_asks_little(admin):
    found = capture(admin, measure_s=0.01)
    assert set(found.topics) == {"orders"}
    orders = found.topics["orders"]
    assert orders.replicas == ((1, 2), (2, 1))
    assert orders.targets == ((3, 2), None)
    assert orders.size_bytes == (1000, 2000)
    assert orders.configs == {"min.insync.replicas": "2"}
    assert found.throttle_bytes_per_s == 5_000_000
    assert len(admin.calls) < 20
    assert not [call for call, _args in admin.calls if "alter" in call or "elect" in call]


def test_a_plan_takes_the_place_of_what_runs(admin):
    found = capture(admin, plan=Plan({tp("quiet", 0): (1,)}), measure_s=0.01)
    assert found.topics["quiet"].targets == ((1,),)
    with pytest.raises(UsageError, match="no topic absent"):
        capture(admin, plan=Plan({tp("absent", 0): (1,)}), measure_s=0.01)


def raising(call, error, *arguments):
    """A hook that raises at this call, with these first arguments."""

    def hook(called, given):
        if called == call and given[: len(arguments)] == arguments:
            raise error

    return hook


def test_a_cluster_with_zookeeper_has_no_quorum_to_ask(admin):
    admin.hook = raising("cluster", KafkaError("describe the quorum", "UNSUPPORTED_VERSION"))
    assert capture(admin, measure_s=0.01).topics["orders"].targets == ((3, 2), None)


@pytest.mark.parametrize(
    ("name", "said"), [("UNSUPPORTED_VERSION", "before Kafka 2.4 .* with --from"), ("X", "list reassignments: X$")]
)
def test_brokers_that_list_no_reassignments_are_refused_with_what_to_do(admin, name, said):
    admin.hook = raising("reassignments", KafkaError("list reassignments", name))
    with pytest.raises(TestbedError, match=said):
        capture(admin, measure_s=0.01)


def test_a_broker_that_hangs_is_left_out_and_asked_once(admin):
    admin.hook = raising("log_dirs", UnreachableError("describe the log folders", "REQUEST_TIMED_OUT"), (2,))
    found = capture(admin, measure_s=0.01)
    assert "brokers [2] did not answer; sizes and rates are those of the others" in found.notes
    assert found.topics["orders"].size_bytes == (1000, 2000)
    assert found.throttle_bytes_per_s is None  # broker 2 alone has a rate
    asked = [(call, args[0]) for call, args in admin.calls if call in ("log_dirs", "broker_configs")]
    assert [each for each in asked if each[1] in (2, (2,))] == [("log_dirs", (2,))]


def test_a_log_dir_that_is_offline_hides_its_replicas_alone(admin):
    kept = {tp("orders", 0): ReplicaLog(700, False)}
    error = LogDirError("describe the log folders of broker 2, /disk2", "KAFKA_STORAGE_ERROR", {2: kept})
    admin.hook = raising("log_dirs", error, (2,))
    found = capture(admin, measure_s=0.01)
    assert "brokers [2] have log dirs with an error; the replay has them whole" in found.notes
    assert "/disk2" not in repr(found)
    assert found.topics["orders"].size_bytes == (1000, 2000)
    assert found.throttle_bytes_per_s == 5_000_000


def test_settings_that_may_not_be_read_are_noted_and_the_rest_is_captured(admin):
    error = TopicConfigsError("describe", "TOPIC_AUTHORIZATION_FAILED", None, ("orders",), {})
    admin.hook = raising("topics_configs", error)
    found = capture(admin, measure_s=0.01)
    assert found.topics["orders"].configs == {} and found.topics["orders"].throttled
    assert [note for note in found.notes if "TOPIC_AUTHORIZATION_FAILED" in note and "1 topic " in note]
    admin.hook = raising("broker_configs", KafkaError("describe", "CLUSTER_AUTHORIZATION_FAILED"))
    found = capture(admin, measure_s=0.01)
    assert found.throttle_bytes_per_s is None
    assert [note for note in found.notes if "the rates of brokers [1, 2, 3] could not be read" in note]


@pytest.mark.parametrize(
    ("lists", "throttled", "partly"),
    [
        ({}, False, False),
        ({FOLLOWER_REPLICAS: "*"}, True, False),
        ({LEADER_REPLICAS: "*"}, True, False),
        ({LEADER_REPLICAS: "0:2", FOLLOWER_REPLICAS: "0:3"}, True, True),
        ({LEADER_REPLICAS: "0:1,0:2,1:1,1:2", FOLLOWER_REPLICAS: "0:3,1:3"}, True, False),
        ({FOLLOWER_REPLICAS: "7:3"}, False, False),
    ],
)
def test_rates_hold_back_what_lists_name(admin, tmp_path, lists, throttled, partly):
    admin.alter_reassignments({tp("orders", 1): (3, 1)})
    admin.alter_configs(ConfigResource.topic("orders"), lists)
    found = capture(admin, measure_s=0.01)
    assert found.topics["orders"].throttled is throttled
    assert any("name some of the moving partitions" in note for note in found.notes) is partly
    small = scale_down(found, 3, 10**9)
    write_capture(tmp_path / "c", "x", small, 10**8, WHEN)
    incident = load(tmp_path / "c" / INCIDENT).broken
    (move,) = incident.entries[0].actions
    assert move.throttle == (5_000_000 if throttled else None)
    assert (incident.state.throttle is None) is throttled
    if not throttled:
        assert (incident.state.throttle.rate, incident.state.throttle.topics) == (5_000_000, [])


def test_a_plan_is_thought_to_come_with_its_lists(admin):
    assert capture(admin, plan=Plan({tp("quiet", 0): (1,)}), measure_s=0.01).topics["quiet"].throttled


def test_a_tiered_topic_is_noted(admin):
    admin.alter_configs(ConfigResource.topic("orders"), {"remote.storage.enable": "true"})
    found = capture(admin, measure_s=0.01)
    assert "remote.storage.enable" not in found.topics["orders"].configs
    assert "1 topic is tiered; the replay has the records in local logs alone" in found.notes


def test_a_segment_smaller_than_newer_brokers_allow_is_larger():
    document, lost = incident_document("x", cluster({"a": replace(topic(), configs={"segment.bytes": "100"})}), 10**8)
    assert document["state"]["topics"]["a"]["configs"] == {"segment.bytes": "1048576"}
    assert lost == ["a: its segments have 1048576 bytes, the least since Kafka 4.0"]


def test_an_internal_topic_is_refused_by_name():
    fake = FakeAdmin({tp("orders", 0): (1, 2), tp("__consumer_offsets", 0): (1, 2)})
    with pytest.raises(UsageError, match="__consumer_offsets: an internal topic"):
        capture(fake, topics=["__consumer_offsets", "orders"], measure_s=0.01)


def test_the_leader_stands_first_also_when_a_move_only_removes(admin):
    admin.assignment[tp("orders", 1)] = (2, 3, 1)
    admin.running = {tp("orders", 1): (3, 1)}
    leads = replace(admin.partitions(["orders"])[tp("orders", 1)], leader=2)
    admin.partitions = lambda _topics: {tp("orders", 1): leads}
    found = capture(admin, measure_s=0.01).topics["orders"]
    assert found.replicas == ((2, 3, 1),) and found.targets == ((3, 1),)


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        ({}, "the plan has no partitions"),
        ({("quiet", 0): (3,)}, "the plan changes nothing"),
        ({("quiet", 0): (1,), ("orders", 7): (1,)}, "moves orders-7, which the cluster does not have"),
        ({("__consumer_offsets", 0): (3, 2)}, "not captured: __consumer_offsets; .* an internal one is never captured"),
    ],
)
def test_a_plan_of_which_nothing_can_be_captured_is_refused(admin, targets, told):
    admin.assignment[tp("__consumer_offsets", 0)] = (1, 2)
    with pytest.raises(UsageError, match=told):
        capture(admin, plan=Plan({tp(*each): hosts for each, hosts in targets.items()}), measure_s=0.01)


def test_what_the_capture_leaves_out_is_counted_and_not_named(admin):
    admin.assignment |= {tp("__consumer_offsets", 0): (1, 2), tp("quiet", 1): (7,)}
    internal, chosen = tp("__consumer_offsets", 0), tp("quiet", 0)
    found = capture(
        admin, plan=Plan({internal: (3,), chosen: (1,)}, {chosen: ("/disk2",)}), measure_s=0.01, topics=["quiet"]
    )
    assert found.topics["quiet"].targets == ((1,), None)
    assert found.notes == (
        "the plan chooses log dirs for 1 partition; the replay has one on each host",
        "1 partition of other topics moves: internal topics, or topics that --topic omits",
        "brokers [7] did not serve; the replay stops them before the first move",
        "1 partition has no replica on a broker that served: empty in the replay",
    )
    with pytest.raises(UsageError, match="what moves is not captured: orders"):
        capture(admin, topics=["quiet"], measure_s=0.01)


@pytest.mark.parametrize(("rate", "limit"), [("0", 1), (str(2**63 - 1), None), ("7", 7)])
def test_a_rate_of_nothing_and_one_without_limit(admin, rate, limit):
    admin.alter_configs(ConfigResource.broker(2), {LEADER_RATE: rate})
    found = capture(admin, measure_s=0.01)
    assert found.throttle_bytes_per_s == limit
    assert any("0 B/s" in note for note in found.notes) == (rate == "0")


def test_names_differ_and_stay_the_same(admin):
    found = capture(admin, measure_s=0.01)
    one, two = anonymised(found, KEY), anonymised(found, KEY)
    assert one == two and "orders" not in repr(one)
    assert set(anonymised(found, b"x" * 32).topics) != set(one.topics)


HOSTILE = "$(touch x)`\n<script>"


def cluster(topics, brokers=6, throttle=4_000_000):
    return CapturedCluster({b: f"rack{b % 2}" for b in range(brokers)}, topics, throttle)


def topic(replicas=((0, 1),), targets=((2, 1),), size=10**6, inbound=0.0):
    return CapturedTopic(replicas, targets, (size,) * len(replicas), (inbound,) * len(replicas))


def test_a_hostile_name_does_not_reach_the_file(tmp_path):
    found = usable_names(cluster({HOSTILE: topic(), "..": topic()}), KEY)
    lost = write_capture(tmp_path / "c", "hostile", found, 400_000_000, WHEN)
    text = (tmp_path / "c" / INCIDENT).read_text()
    assert "touch" not in text and "script" not in text
    assert any("have another name" in each for each in lost)
    load(tmp_path / "c" / INCIDENT)


def test_the_files_replay(tmp_path):
    wide = topic(((0, 1), (1, 0)), ((2, 1), None))
    found = cluster({"orders": wide, "clicks": topic(((3,),), (None,), 0, 2e5)})
    lost = write_capture(tmp_path / "c", "captured", replace(found, notes=("a note",)), 400_000_000, WHEN)
    assert lost == ["a note"]
    text = (tmp_path / "c" / INCIDENT).read_text()
    assert text.startswith("# Captured at 2026-11-24T12:00:00Z.\n# Not as captured: a note.\n")
    file = load(tmp_path / "c" / INCIDENT)
    assert file.broken.expected_failures == ()
    move = file.broken.entries[0].actions[0]
    assert move.hosts == [["b3", "b2"], ["b2", "b1"]] and move.throttle == 4_000_000
    assert [(load.to, load.produce) for load in file.broken.loads] == [("clicks", 200_000)]
    assert [host.rack for host in file.broken.topology.brokers] == ["r1", "r2"] * 3
    with pytest.raises(UsageError, match="exists"):
        write_capture(tmp_path / "c", "captured", found, 400_000_000, WHEN)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c"]


def test_a_partition_whose_move_ends_during_the_capture_has_the_replicas_before(admin):
    ended = replace(admin.partitions(["orders"])[tp("orders", 0)], replicas=(3, 2), leader=3)
    admin.partitions = lambda _topics: {tp("orders", 0): ended}
    orders = capture(admin, measure_s=0.01).topics["orders"]
    assert {*orders.replicas[0]} == {1, 2} and orders.targets == ((3, 2),)


@pytest.mark.parametrize("begins_s", [30.0, 30.6, 30.96, 30.04])
def test_moves_that_begin_at_a_fraction_of_a_second_are_written(tmp_path, begins_s):
    found = cluster({"a": topic(), "b": replace(topic(), begins_s=begins_s)})
    write_capture(tmp_path / "c", "x", found, 400_000_000, WHEN)
    broken = load(tmp_path / "c" / INCIDENT).broken
    (done,) = broken.entries[1].expectations
    assert broken.lasts_s - 1 <= broken.entries[1].trigger.seconds + done.within <= broken.lasts_s


def test_a_broker_that_returns_for_a_moment_is_out_until_its_last_return():
    outages = (
        BrokerOutage(1, 5.0, 6.0),
        BrokerOutage(1, 13.9, 20.0),
        BrokerOutage(1, 28.1, None),
        BrokerOutage(2, 21.0, 22.0),
    )
    document, lost = incident_document("x", replace(cluster({"a": topic()}), outages=outages), 10**9)
    acts = [
        (each["at"], *each["do"]) for each in document["timeline"] if each.get("name", "").startswith(("stop", "ret"))
    ]
    assert acts == [
        ("20s", "broker_kill"),
        ("35s", "restart"),
        ("36s", "broker_kill"),
        ("37s", "restart"),
        ("43.1s", "broker_kill"),
    ]
    assert "1 outages are one with the outage before: the broker would serve for 8 s or less" in lost


def test_the_throttle_stays_until_the_move_that_ends_last():
    def clean_up(**topics):
        document, _lost = incident_document("x", cluster(topics), 10**9)
        return next(each["at"] for each in document["timeline"] if each.get("name") == "clean-up")

    big, small = topic(size=400_000_000), topic(size=1_000)  # 100 s and no time at 4 MB/s
    assert clean_up(a=big) == {"move_progress": "done"}
    for others in ({"b": small}, {"b": replace(small, begins_s=30.0)}):
        assert clean_up(a=big, **others) == {"move_progress": {"share": "done", "topic": "a"}}
    assert clean_up(a=big, b=replace(small, begins_s=101.0)) == {"move_progress": {"share": "done", "topic": "b"}}


@pytest.mark.parametrize(
    ("throttle", "nic_bps", "seconds"),
    [
        # One leader sends 4 × 100 MB, while each new replica gets 100 MB: twice the 100 s at 4 MB/s.
        (4_000_000, 10**9, 200),
        (None, 32_000_000, 200),
        # The NIC is slower than the throttle.
        (100_000_000, 32_000_000, 200),
    ],
)
def test_the_replay_lasts_as_long_as_the_busiest_broker_copies(throttle, nic_bps, seconds):
    leaves = topic(((0,),) * 4, ((1,), (2,), (3,), (4,)), 100_000_000)
    document, _lost = incident_document("x", cluster({"a": leaves}, throttle=throttle), nic_bps)
    assert document["lasts"] == f"{seconds + 120 + 15}s"


def test_nothing_that_moves_and_too_much_are_refused(tmp_path):
    with pytest.raises(UsageError, match="nothing moves: .* or --scale-down merged its brokers"):
        incident_document("x", cluster({"a": topic(targets=(None,))}), 10**8)
    with pytest.raises(UsageError, match="use --scale-down"):
        write_capture(tmp_path / "c", "x", cluster({"a": topic(size=10**13)}), 10**8, WHEN)
    with pytest.raises(UsageError, match="501 partitions, allowed: 500; name other topics"):
        incident_document("x", cluster({"a": topic(((0, 1),) * 501, ((2, 1),) * 501)}), 10**8)
    assert list(tmp_path.iterdir()) == []


def test_a_name_like_a_number_stays_a_name(tmp_path):
    names = ["1", "1e3", "0o7", "0x1f", "1_000", "12.5", "1E-3", "null", "true", "no", "2024-01-01"]
    write_capture(tmp_path / "c", "x", cluster({name: topic() for name in names}), 10**8, WHEN)
    assert list(load(tmp_path / "c" / INCIDENT).broken.state.topics) == names


MANY = {f"t{n}": topic(((0, 1), (1, 2)) * 20, ((2, 1), (0, 1)) * 20) for n in range(120)}


@pytest.mark.parametrize(
    ("found", "kafka", "told"),
    [
        (cluster({"a": topic()}, 101), "4.3.1", "100 at most"),
        (CapturedCluster({b: f"rack{b}" for b in range(17)}, {"a": topic()}, None), "4.3.1", "16 at most"),
        (cluster(MANY), "4.3.1", "incident.yaml:[0-9]+:[0-9]+: more than 20000 values"),
        (cluster({"a": topic()}, throttle=10**19), "4.3.1", "throttle"),
        (cluster({"a": topic()}), "banana", "banana is not a Kafka version"),
    ],
    ids=["brokers", "racks", "topics", "throttle", "release"],
)
def test_files_that_would_not_replay_are_not_written(tmp_path, found, kafka, told):
    with pytest.raises(UsageError, match="nothing is written, .* change --scale-down") as caught:
        write_capture(tmp_path / "new" / "c", "x", found, 10**8, WHEN, kafka)
    assert re.search(told, str(caught.value)) and str(tmp_path) not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_leaves_nothing(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "c", tmp_path / "new" / ("c" * 300)):
        with pytest.raises(TestbedError, match="it cannot be written: .*; make room, or use --out"):
            write_capture(folder, "x", cluster({"a": topic()}), 10**8, WHEN)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_captured_topic_keeps_its_name_and_each_list_of_hosts_stands_for_itself(tmp_path):
    found = cluster({"captured-load": topic(), "orders": topic(((0, 1), (1, 0)), ((2, 1), None), inbound=1e5)})
    write_capture(tmp_path / "c", "x", found, 10**8, WHEN)
    state = load(tmp_path / "c" / INCIDENT).broken.state
    assert [(name, each.partitions) for name, each in state.topics.items()] == [
        ("captured-load", 1),
        ("orders", 2),
        ("captured-load-2", 2),
    ]
    assert "&id" not in (tmp_path / "c" / INCIDENT).read_text()


def test_settings_that_a_replay_cannot_keep_are_named():
    compacted = replace(topic(), configs={"cleanup.policy": "compact,delete", "retention.ms": "60000"})
    document, lost = incident_document("x", cluster({"a": compacted}), 10**8)
    assert document["state"]["topics"]["a"]["configs"] == {"retention.ms": "60000"}
    assert [each.split(":")[1] for each in lost] == [
        " it is not compacted, since a compacted topic refuses the replay's records without keys",
        " brokers retain records for 60000 ms, and the replay may last 135 s",
    ]


def test_a_move_that_outlasts_the_longest_replay_is_named():
    document, lost = incident_document("x", cluster({"a": topic(size=4 * 10**9)}, throttle=10**6), 10**8)
    assert document["lasts"] == "3615s"
    assert lost == ["the move may take 8120 s; the replay ends after 3600 s: use a smaller --scale-down"]


def test_fewer_replicas_can_still_be_written_to():
    wide = CapturedTopic(((0, 1, 2),), ((3, 1, 2),), (1000,), (0.0,), {"min.insync.replicas": "2"})
    after = scale_down(cluster({"a": wide}), 1, 10**9)
    assert after.topics["a"].configs == {"min.insync.replicas": "1"}
    assert "1 topic has a lower min.insync.replicas, of fewer replicas" in after.notes
    unreachable = replace(wide, configs={"min.insync.replicas": "4"})
    assert scale_down(cluster({"a": unreachable}), 1, 10**9).topics["a"].configs == unreachable.configs


def test_skewed_sizes_and_other_writers_are_named():
    skewed = CapturedTopic(((0,), (1,)), ((2,), None), (9_000_000, 1_000_000), (3e6, 0.0))
    document, lost = incident_document("x", cluster({"a": skewed, "b": topic(inbound=2e6)}), 4 * 10**8)
    assert any("1.8 times the mean" in each for each in lost)
    first, second = document["load"]
    assert first == {"produce": "3000000B/s", "to": "captured-load", "record_size": "4096B"}
    assert second == {**first, "produce": "2000000B/s", "to": "captured-load-2"}
    assert yaml.safe_load(yaml.safe_dump(document)) == document


BROKERS = st.integers(0, 11)
HOSTS = st.lists(BROKERS, min_size=1, max_size=3, unique=True).map(tuple)
PARTITION = st.tuples(HOSTS, st.none() | HOSTS, st.integers(0, 10**9), st.floats(0, 10**6))
TOPICS = st.lists(st.lists(PARTITION, min_size=1, max_size=5), min_size=1, max_size=4)


def drawn(topics):
    made = {f"t{n}": CapturedTopic(*map(tuple, zip(*parts, strict=True))) for n, parts in enumerate(topics)}
    return cluster(made, 12)


@given(TOPICS, st.integers(1, 12), st.integers(1, 10**10), st.floats(0.001, 1))
def test_what_a_smaller_cluster_keeps(topics, brokers, most_bytes, rates):
    before = drawn(topics)
    small, broker_of = scale_down(before, brokers, most_bytes, rates), merged_brokers(before, brokers)
    whole = sum(sum(each.size_bytes) for each in before.topics.values())
    factor = min(1.0, most_bytes / whole) if whole else 1.0
    assert len(small.brokers) <= brokers and set(broker_of.values()) == set(small.brokers)
    assert sum(sum(each.size_bytes) for each in small.topics.values()) <= most_bytes
    for name, was in before.topics.items():
        now = small.topics[name]
        for old, new in zip(was.replicas, now.replicas, strict=True):
            assert new and len(set(new)) == len(new) and new[0] == broker_of[old[0]]
        for old, new in zip(was.targets, now.targets, strict=True):
            assert new is None or (old is not None and set(new) == {broker_of[b] for b in old})
        for old, new in zip(was.size_bytes, now.size_bytes, strict=True):
            assert new == pytest.approx(old * factor, abs=1)
        for old, new in zip(was.inbound_bytes_per_s, now.inbound_bytes_per_s, strict=True):
            assert new == pytest.approx(old * rates)
    assert small.throttle_bytes_per_s == pytest.approx(before.throttle_bytes_per_s * rates, abs=1)


@given(TOPICS, st.integers(12, 20))
def test_with_as_many_brokers_nothing_is_merged(topics, brokers):
    before = drawn(topics)
    assert merged_brokers(before, brokers) == {broker: broker for broker in range(12)}
    assert not [each for each in scale_down(before, brokers, 10**15).notes if "replicas" in each or "vanish" in each]


def test_brokers_of_a_move_are_kept_apart():
    parts = [((n % 6,), ((n + 1) % 6,), 1000, 0.0) for n in range(6)]
    before = cluster({"t": CapturedTopic(*map(tuple, zip(*parts, strict=True)))})
    after = scale_down(before, 3, 10**9)
    assert all(target is not None for target in after.topics["t"].targets)
    assert "6 moves are within one broker now: not in the replay" in scale_down(before, 1, 10**9).notes


@pytest.mark.parametrize(
    ("brokers", "most_bytes", "throttle", "rates", "time"),
    [
        (6, 10**9, 4_000_000, 1.0, 1.0),
        (6, 150_000_000, 4_000_000, 1.0, 0.5),
        (6, 10**9, 4_000_000, 0.5, 2.0),
        (6, 10**9, None, 0.5, 2.0),
        # Three brokers move to three others. Of two, one receives what two of them did.
        (2, 10**9, 4_000_000, 1.0, 2.0),
        (2, 150_000_000, 4_000_000, 0.5, 2.0),
    ],
)
def test_the_timeline_shrinks_as_the_copies_of_the_busiest_broker(brokers, most_bytes, throttle, rates, time):
    parts = [((n,), (n + 3,), 100_000_000, 0.0) for n in range(3)]
    moves = CapturedTopic(*map(tuple, zip(*parts, strict=True)))
    before = replace(cluster({"t": moves}, throttle=throttle), outages=(BrokerOutage(4, 10.0, 20.0),))
    after = scale_down(before, brokers, most_bytes, rates)
    assert all(target is not None for target in after.topics["t"].targets)
    (outage,) = after.outages
    assert (outage.stopped_s, outage.returned_s) == pytest.approx((10.0 * time, 20.0 * time))
    assert (f"the moves take × {time:.3g} of their time, by the busiest broker" in after.notes) is (time != 1)


@pytest.mark.parametrize("arguments", [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0), (1, 1, math.nan), (1, 1, math.inf)])
def test_a_size_of_nothing_is_refused(arguments):
    with pytest.raises(ValueError, match="must be above 0"):
        scale_down(cluster({"t": topic()}), *arguments)
