import pytest

from results.contract.move import Expected, Fetchers
from testbed.errors import UsageError
from testbed.experiments.experiment import experiments, find_experiment, read_settings
from testbed.experiments.kip73_layouts import (
    one_of_two,
    one_to_two,
    sized_for,
    swap,
    throttled_layout,
    two_node,
    two_to_one,
)
from testbed.experiments.layout import (
    PartitionGroup,
    assignment,
    carried,
    expected,
    fetchers,
    fills,
    flows,
    kip73_estimate,
    misplaced,
    plan,
)
from testbed.experiments.model_inputs import predicted_seconds
from testbed.kafka.types import PartitionState, TopicPartition
from testbed.reassignment.plan import moves
from testbed.throttle.duration import bottleneck

IDS = {"A": 1, "B": 2, "C": 3}
TWO, THREE = ("A", "B"), ("A", "B", "C")
MB = 1_000_000
SETTINGS = {"rate": 10 * MB, "preload": 52.0, "partitions": 4}
PRODUCE = {**SETTINGS, "inbound": 3 * MB}


def told(found):
    return [(e.host, e.direction, e.bytes, e.in_sync_bytes_per_s) for e in expected(carried(found, IDS), IDS)]


def of_kind(found, kind):
    return [(f.leader, f.follower, f.partitions) for f in flows(found) if f.kind == kind]


def test_two_node_moves_what_the_quota_lets_through_in_the_time_asked_for():
    found = two_node(SETTINGS, TWO).named("ab12cd")
    assert of_kind(found, "throttled") == [("A", "B", (0, 1, 2, 3))]
    assert of_kind(found, "in_sync") == []
    assert fetchers(found, dict.fromkeys(IDS, 1)) == {"A": Fetchers(1, 0), "B": Fetchers(0, 1)}
    assert told(found) == [("B", "receive", 520 * MB, 0.0), ("A", "transmit", 520 * MB, 0.0)]
    filled = fills(found.groups, 7)
    assert [(f.topic, f.recipe.seed) for f in filled] == [
        ("kip73-ab12cd", 7),
        ("control-ab12cd", 8),
        ("calibration-ab12cd", 9),
    ]
    assert 520 * MB <= filled[0].bytes < 520 * MB + 4 * 4096


def test_adding_on_two_nodes_keeps_the_leader():
    found = two_node({**SETTINGS, "add": "yes"}, TWO)
    assert plan(found.throttled, IDS).targets[TopicPartition("kip73", 0)] == (1, 2)
    assert of_kind(found, "throttled") == [("A", "B", (0, 1, 2, 3))]


def test_one_to_two_is_led_by_a_and_goes_to_both_others():
    found = one_to_two(SETTINGS, THREE)
    assert assignment(found.throttled, IDS) == {"kip73": {0: [1, 2], 1: [1, 2], 2: [1, 3], 3: [1, 3]}}
    targets = plan(found.throttled, IDS).targets
    assert {tp.partition: target for tp, target in targets.items()} == {0: (3, 2), 1: (3, 2), 2: (2, 3), 3: (2, 3)}
    assert of_kind(found, "throttled") == [("A", "C", (0, 1)), ("A", "B", (2, 3))]
    # Those in sync are listed as leaders-to-be, so that A's quota records what they fetch.
    assert of_kind(found, "in_sync") == [("A", "B", (0, 1)), ("A", "C", (2, 3))]
    assert fetchers(found, dict.fromkeys(IDS, 1)) == {"A": Fetchers(2, 0), "B": Fetchers(0, 1), "C": Fetchers(0, 1)}
    # A follower has its own threads, whatever its leader has as a follower of others.
    assert fetchers(found, {"A": 9, "B": 1, "C": 4}) == {"A": Fetchers(5, 0), "B": Fetchers(0, 1), "C": Fetchers(0, 4)}
    # In 46 s four whole windows' worth, and 4 s of a fifth at the followers' 20 MB/s.
    assert told(found) == [
        ("B", "receive", 270.25 * MB, 0.0),
        ("C", "receive", 270.25 * MB, 0.0),
        ("A", "transmit", 540.5 * MB, 0.0),
    ]
    assert bottleneck(carried(found, IDS), 10 * MB).broker == 1
    assert predicted_seconds(found, IDS, carried(found, IDS), [(0, 10 * MB)]) == pytest.approx(46 + 0.7 * 5.75)


def test_one_to_two_while_producing_leaves_the_sender_quota_minus_twice_inbound():
    found = one_to_two(PRODUCE, THREE)
    (b, c, a) = expected(carried(found, IDS), IDS)
    assert [(e.host, e.direction, e.in_sync_bytes_per_s) for e in (b, c, a)] == [
        ("B", "receive", 1.5 * MB),
        ("C", "receive", 1.5 * MB),
        ("A", "transmit", 6.0 * MB),
    ]
    assert a.bytes == 2 * b.bytes == 2 * c.bytes
    assert predicted_seconds(found, IDS, carried(found, IDS), [(0, 10 * MB)]) == pytest.approx(46 + 0.7 * 5)


def test_two_to_one_is_led_by_both_and_bound_by_the_receiver():
    found = two_to_one(SETTINGS, THREE)
    assert assignment(found.throttled, IDS)["kip73"] == {0: [1, 2], 1: [1, 2], 2: [2, 1], 3: [2, 1]}
    assert of_kind(found, "throttled") == [("A", "C", (0, 1)), ("B", "C", (2, 3))]
    assert of_kind(found, "in_sync") == [("A", "B", (0, 1)), ("B", "A", (2, 3))]
    assert fetchers(found, dict.fromkeys(IDS, 1)) == {"A": Fetchers(2, 0), "B": Fetchers(2, 0), "C": Fetchers(0, 2)}
    share = bottleneck(carried(found, IDS), 10 * MB)
    assert (share.broker, share.direction, share.bytes) == (3, "receive", 520 * MB)


def test_a_swap_binds_both_brokers_in_both_directions():
    found = swap(SETTINGS, TWO)
    assert of_kind(found, "throttled") == [("A", "B", (0, 1)), ("B", "A", (2, 3))]
    half = (520 * MB, 0.0)
    assert sorted(told(found)) == sorted((host, way, *half) for host in TWO for way in ("transmit", "receive"))
    assert fetchers(found, {"A": 1, "B": 1}) == {"A": Fetchers(1, 1), "B": Fetchers(1, 1)}
    assert predicted_seconds(found, IDS, carried(found, IDS), [(0.0, 10e6)]) == pytest.approx(52)


def test_two_to_one_while_producing_leaves_the_receiver_quota_minus_inbound():
    found = two_to_one(PRODUCE, THREE)
    assert ("C", "receive", 364 * MB, 3.0 * MB) in told(found)
    assert ("A", "transmit", 182 * MB, 3.0 * MB) in told(found)
    assert bottleneck(carried(found, IDS), 10 * MB).broker == 3


def test_all_led_by_one_of_two():
    found = one_of_two(PRODUCE, THREE)
    assert of_kind(found, "throttled") == [("A", "C", (0, 1, 2, 3))]
    share = bottleneck(carried(found, IDS), 10 * MB)
    assert (share.broker, share.inbound_bytes_per_s, share.in_sync_bytes_per_s) == (1, 6.0 * MB, 3.0 * MB)


def test_a_wildcard_lists_also_what_does_not_move():
    moving = PartitionGroup("high", range(4), ("A",), ("B",), 100)
    still = PartitionGroup("low", range(2), ("A", "B"), ("A", "B"), 40, 500.0)
    listed = throttled_layout([moving, still], "A", "B", wildcard=True)
    assert of_kind(listed, "in_sync") == [("A", "B", (0, 1))]
    assert expected(carried(listed, IDS), IDS)[-1] == Expected("A", "transmit", 100, 500.0)
    without_wildcard = throttled_layout([moving, still], "A", "B")
    assert of_kind(without_wildcard, "in_sync") == []
    assert told(without_wildcard)[-1] == ("A", "transmit", 100, 0.0)
    assert [group.topic for group in listed.moving] == ["high", "control"]
    assert listed.sized(1000).throttled[1].bytes == 40  # what does not have to be sent keeps its size


def test_an_empty_broker_is_sent_everything_though_nothing_moves():
    filled = PartitionGroup("t", range(4), ("A", "B"), ("A", "B"), 100, empty=("B",))
    found = throttled_layout([filled], "A", "B", wildcard=True)
    assert (filled.adding, filled.in_sync, filled.moves) == (("B",), (), False)
    assert of_kind(found, "throttled") == [("A", "B", (0, 1, 2, 3))]
    assert fetchers(found, dict.fromkeys(IDS, 2)) == {"A": Fetchers(2, 0), "B": Fetchers(0, 2)}
    assert found.partitions == 4


def test_the_scene_is_what_the_reassignment_makes_of_it():
    found = two_to_one(SETTINGS, THREE)
    states = {
        TopicPartition(topic, p): PartitionState(TopicPartition(topic, p), r[0], 0, tuple(r), tuple(r))
        for topic, partitions in assignment(found.throttled, IDS).items()
        for p, r in partitions.items()
    }
    assert misplaced(found.throttled, states, IDS) == []
    for move in moves(plan(found.throttled, IDS), states):
        assert (move.adding, len(move.removing)) == ((3,), 1)
        assert states[move.tp].leader in move.removing  # it is the leader that leaves, and still is copied from


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ((2, (1, 2), (1, 2)), "leader 2, replicas [1, 2], ISR [1, 2]; expected 1 of [1, 2], [1, 2] in sync"),
        ((1, (1, 3), (1, 3)), "leader 1, replicas [1, 3]"),
        ((1, (1, 2), (1,)), "ISR [1]; expected 1 of [1, 2], [1, 2] in sync"),
        (None, "t-0: does not exist"),
    ],
)
def test_what_does_not_lie_as_the_scene_has_it_is_said(state, said):
    tp = TopicPartition("t", 0)
    group = PartitionGroup("t", range(1), ("A", "B"), ("C", "B"))
    states = {} if state is None else {tp: PartitionState(tp, state[0], 0, state[1], state[2])}
    [wrong] = misplaced([group], states, IDS)
    assert said in wrong


def test_kip73_to_the_letter_counts_all_replicas_and_all_partitions():
    sizes = dict.fromkeys((TopicPartition("kip73", p) for p in range(4)), 130 * MB)
    static = kip73_estimate(two_node(SETTINGS, TWO), 10 * MB, sizes, {})
    assert (static.total_log_bytes, static.move_ratio, static.seconds) == (520 * MB, 1.0, 52.0)
    # r = 2: half of the replicas move, but MoveRatio is of partitions: the KIP says twice as long.
    assert kip73_estimate(one_to_two(SETTINGS, THREE), 10 * MB, sizes, {}).seconds == 104.0
    inbound = dict.fromkeys(sizes, 0.75 * MB)
    assert kip73_estimate(one_to_two(PRODUCE, THREE), 10 * MB, sizes, inbound).max_bytes_in_per_s == 3 * MB
    both = kip73_estimate(two_to_one(PRODUCE, THREE), 10 * MB, sizes, inbound)
    assert (both.max_bytes_in_per_s, both.seconds) == (1.5 * MB, 1040 / 8.5)
    assert kip73_estimate(two_node(PRODUCE, TWO), 3 * MB, sizes, inbound).seconds == float("inf")


def test_a_throttle_that_leaves_nothing_to_catch_up_with_is_refused():
    with pytest.raises(UsageError, match="never makes progress: what is written meanwhile takes 6MB/s of it"):
        one_to_two({**PRODUCE, "rate": 6 * MB}, THREE)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("kip73-stuck", ["inbound=1MB/s"], "nothing would be stuck"),
        ("kip73-nic-bound", ["rate=10MB/s"], "the run could not show which of the two bound"),
        ("kip73-mixed-volume", ["response=1MiB"], "no ISR would shrink even if those in sync were held back"),
    ],
)
def test_settings_that_prove_nothing_are_refused_before_anything_is_made(name, given, said):
    experiment = find_experiment(name)
    with pytest.raises(UsageError, match=said):
        experiment.overlay(read_settings(experiment, "ci", given))


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
@pytest.mark.parametrize("name", [name for name in experiments() if name.startswith("kip73-")])
def test_every_profile_of_every_scenario_has_a_scene_of_100_moving_partitions(name, profile):
    experiment = find_experiment(name)
    settings = read_settings(experiment, profile, [])
    experiment.overlay(settings)
    assert settings["partitions"] == 100
    assert settings["mode"] == "unbatched"


def test_a_group_needs_hosts_each_once_and_a_leader_that_has_something():
    with pytest.raises(ValueError, match="current is"):
        PartitionGroup("t", range(1), ("A", "A"), ("B",))
    with pytest.raises(ValueError, match="its leader A is empty"):
        PartitionGroup("t", range(1), ("A", "B"), ("A", "B"), empty=("A",))


def test_volumes_are_those_of_the_model():
    found = sized_for(throttled_layout([PartitionGroup("t", range(2), ("A",), ("B",), 1)], "A", "B"), 5 * MB, 10.0)
    assert found.throttled[0].bytes == 50 * MB
