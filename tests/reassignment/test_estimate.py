"""From a deadline or a share of the NIC to the throttle, and what is refused."""

import math
from collections.abc import Mapping

import pytest
from fakes.admin import FakeAdmin

from testbed.kafka.errors import KafkaError, LogDirError, TopicConfigsError, UnreachableError
from testbed.kafka.types import ConfigResource, TopicPartition
from testbed.reassignment.estimate import (
    MARGIN,
    WIRE,
    ClusterLoad,
    InfeasibleError,
    for_deadline,
    for_rate,
    for_share,
    observe,
)
from testbed.reassignment.lag import LogSizes, PollClock, growth
from testbed.reassignment.plan import Plan, PlanError
from testbed.throttle.configs import FOLLOWER_REPLICAS, LEADER_REPLICAS
from testbed.throttle.duration import Copy

MB = 10**6
T0, T1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)


def seen(
    *copies: Copy,
    received: Mapping[int, float] | None = None,
    sent: Mapping[int, float] | None = None,
    produced: Mapping[int, float] | None = None,
) -> ClusterLoad:
    quiet = dict.fromkeys((1, 2, 3), 0.0)
    return ClusterLoad(
        copies,
        total_partitions=10,
        log_bytes=dict.fromkeys((1, 2, 3), 2000 * MB),
        produced_bytes_per_s=quiet | dict(produced or {}),
        received_bytes_per_s=quiet | dict(received or {}),
        sent_bytes_per_s=quiet | dict(sent or {}),
        measured_s=10.0,
    )


def copy(mb: int, inbound_mb: float, in_sync: tuple[int, ...] = (3,), leader: int = 1, to: int = 2) -> Copy:
    return Copy(T0, leader, in_sync, (to,), mb * MB, inbound_mb * MB)


def test_a_deadline_gives_a_throttle_that_meets_it_with_a_tenth_in_hand_and_says_what_binds() -> None:
    told = for_deadline(seen(copy(1000, 2)), 110)
    assert told.throttle_bytes_per_s == pytest.approx((1000 / 100 + 4) * MB)
    assert (told.seconds, told.at_most_s) == (pytest.approx(100), pytest.approx(110))
    assert [(line.share.broker, line.share.direction, line.is_bottleneck) for line in told.lines] == [
        (2, "receive", False),
        (1, "transmit", True),
    ]
    assert told.lines[0].seconds == pytest.approx(1000 / 12)
    assert told.lines[0].room_bytes_per_s is None


def test_kip_73_s_own_formula_stands_beside_it() -> None:
    told = for_rate(seen(copy(1000, 2), produced={1: 2.0 * MB}), 10 * MB)
    # MoveRatio 1/10, 2,000 MB a broker, three brokers, and the quota less the busiest broker's inbound rate.
    assert told.kip73_seconds == pytest.approx(0.1 * 2000 * 3 / 8)
    assert told.seconds == pytest.approx(1000 / 6)


def test_a_deadline_that_the_nic_cannot_carry_is_refused_with_the_one_that_it_can() -> None:
    carried = 400e6 / 8 / WIRE
    quiet, busy = seen(copy(1000, 0)), seen(copy(1000, 0), received={2: 20 * MB})
    for observed, other in ((quiet, 0), (busy, 20 * MB)):
        with pytest.raises(InfeasibleError) as caught:
            for_deadline(observed, 20, 400_000_000)
        shortest_s = MARGIN * 1000 * MB / (carried - other)
        assert caught.value.deadline_s == pytest.approx(shortest_s)
        assert "broker 2 (receive)" in caught.value.why or other == 0
        assert for_deadline(observed, shortest_s * 1.001, 400_000_000).at_most_s <= shortest_s * 1.01


def test_a_nic_that_what_is_written_fills_can_meet_no_deadline() -> None:
    with pytest.raises(InfeasibleError, match="never makes progress; no deadline can be met") as caught:
        for_deadline(seen(copy(1000, 48)), 3600, 400_000_000)
    assert caught.value.deadline_s is None


def test_a_share_of_the_nic_counts_headers() -> None:
    told = for_share(seen(copy(1000, 0)), 0.3, 1_000_000_000)
    assert told.throttle_bytes_per_s == int(0.3 * 125 * MB / WIRE)


def test_a_share_at_or_under_the_inbound_rate_never_makes_progress_and_the_lowest_that_does_is_named() -> None:
    observed = seen(copy(1000, 10), sent={1: 10 * MB})
    with pytest.raises(InfeasibleError) as caught:
        for_share(observed, 0.1, 1_000_000_000)
    assert "never makes progress: broker 1 (transmit) 20MB/s come in" in caught.value.why
    assert caught.value.share == pytest.approx(20 * 8 * WIRE / 1000)
    assert caught.value.deadline_s is not None
    assert math.isfinite(for_share(observed, caught.value.share + 0.001, 1_000_000_000).seconds)


def test_a_throttle_above_what_the_nic_leaves_is_bound_by_the_nic_and_says_so() -> None:
    told = for_rate(seen(copy(1000, 0), received={2: 5 * MB}), 100 * MB, 400_000_000)
    room = 400e6 / 8 / WIRE - 5 * MB
    [line] = [line for line in told.lines if line.is_bottleneck]
    assert (line.share.broker, line.limited_by_nic) == (2, True)
    assert told.seconds == pytest.approx(1000 * MB / room)
    assert any("the NIC leaves" in caution for caution in told.cautions)


def test_in_sync_followers_of_the_moving_partitions_are_not_counted_twice() -> None:
    told = for_rate(seen(copy(1000, 5), sent={1: 5 * MB}), 20 * MB, 400_000_000)
    leader = next(line for line in told.lines if line.share.direction == "transmit")
    assert leader.room_bytes_per_s == pytest.approx(400e6 / 8 / WIRE)
    assert leader.share.inbound_bytes_per_s == 10 * MB


def test_nothing_to_copy_needs_no_throttle() -> None:
    told = for_deadline(seen(), 60)
    assert (told.throttle_bytes_per_s, told.seconds, told.lines, told.kip73_seconds) == (0, 0, (), 0)


# -- what is seen of a cluster -----------------------------------------------------------------------------


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    @property
    def pauses(self) -> PollClock:
        return PollClock(lambda: self.now_s, self.sleep)


def _cluster(clock: Clock, rates: Mapping[TopicPartition, float]) -> FakeAdmin:
    """Every log began with 100 MB at time 1000."""
    return FakeAdmin(
        {T0: (1, 3), T1: (2, 3), OTHER: (3, 1)},
        size_of=lambda _broker, tp: 100 * MB + round(rates.get(tp, 0.0) * (clock.now_s - 1000)),
    )


def test_rates_come_from_readings_of_the_logs_alone() -> None:
    clock = Clock()
    admin = _cluster(clock, {T0: 2.0 * MB, OTHER: 5.0 * MB})
    found = observe(admin, Plan({T0: (2, 3), T1: (2, 3)}), 10, clock.pauses)
    assert clock.now_s == 1010
    [copied] = found.copies
    assert (copied.leader, copied.in_sync, copied.adding, copied.bytes) == (1, (3,), (2,), 120 * MB)
    assert copied.inbound_bytes_per_s == pytest.approx(2 * MB)
    assert found.produced_bytes_per_s == pytest.approx({1: 2 * MB, 2: 0, 3: 5 * MB})
    assert found.received_bytes_per_s == pytest.approx({1: 7 * MB, 2: 0, 3: 7 * MB})
    assert found.sent_bytes_per_s == pytest.approx({1: 2 * MB, 2: 0, 3: 5 * MB})
    assert (found.total_partitions, found.measured_s) == (3, 10)
    assert found.log_bytes == {1: 270 * MB, 2: 100 * MB, 3: 370 * MB}
    read_only = {"reassignments", "topics", "partitions", "cluster", "log_dirs", "topics_configs"}
    assert {name for name, _ in admin.calls} == read_only
    assert found.cautions == ()


def test_an_interval_in_which_old_segments_went_does_not_count() -> None:
    sizes = [100, 110, 60, 70, 80]
    readings = [LogSizes({1: {T0: size * MB}}, {1: float(5 * at)}) for at, size in enumerate(sizes)]
    assert growth(readings, 1, T0) == 2 * MB
    assert growth(readings[1:3], 1, T0) == 0
    assert growth(readings, 2, T0) == 0


def test_a_replica_out_of_sync_is_told() -> None:
    clock = Clock()
    admin = _cluster(clock, {})
    admin.isr_lacks = frozenset({3})
    found = observe(admin, Plan({T0: (2, 3)}), 1, clock.pauses)
    assert found.cautions == ("t-0: replicas [3] are not in sync; what they lack is not in the estimate",)
    assert found.copies[0].in_sync == ()


def test_a_log_folder_that_is_offline_is_a_caution_and_a_silent_broker_an_error() -> None:
    clock = Clock()
    admin = _cluster(clock, {})
    error: KafkaError = LogDirError("describe the log folders of broker 3, /disk1", "KAFKA_STORAGE_ERROR", {3: {}})

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "log_dirs" and args == ((3,),):
            raise error

    admin.hook = hook
    found = observe(admin, Plan({T0: (2, 3)}), 1, clock.pauses)
    assert found.cautions == (f"{error}: the replicas there are not in the estimate",)
    assert found.copies[0].bytes == 100 * MB
    error = UnreachableError("describe the log folders of broker 3", "REQUEST_TIMED_OUT")
    with pytest.raises(UnreachableError, match="broker 3: REQUEST_TIMED_OUT"):
        observe(admin, Plan({T0: (2, 3)}), 1, clock.pauses)


def test_what_is_listed_already_counts_also_where_it_does_not_move() -> None:
    """The lists of another move, or `*`: their in-sync traffic takes a part of the same quotas."""
    clock = Clock()
    rates = {T0: 1.0 * MB, T1: 2.0 * MB, OTHER: 4.0 * MB}
    admin = _cluster(clock, rates)
    admin.assignment = {T0: (1, 3), T1: (1, 2), OTHER: (3, 2)}
    plan = Plan({T0: (1, 2)})
    assert _inbound(observe(admin, plan, 10, clock.pauses)) == pytest.approx(
        {(2, "receive"): 1 * MB, (1, "transmit"): 2 * MB}
    )
    admin.configs = {
        ConfigResource.topic("t"): {LEADER_REPLICAS: "*"},
        ConfigResource.topic("other"): {FOLLOWER_REPLICAS: "0:1,0:2"},
    }
    found = observe(admin, plan, 10, clock.pauses)
    assert _inbound(found) == pytest.approx({(2, "receive"): 5 * MB, (1, "transmit"): 4 * MB})
    assert found.cautions == (
        "2 partitions are listed as throttled without being moved (other, t): the quotas "
        "count what followers fetch there",
    )
    assert len(found.copies) == 1
    with pytest.raises(InfeasibleError, match=r"never makes progress: broker 2 \(receive\) 5MB/s come in"):
        for_rate(found, 5 * MB - 1)
    rooms = {line.share.broker: line.room_bytes_per_s for line in for_rate(found, 9 * MB, 400_000_000).lines}
    # Broker 2 receives 6 MB/s; the quota leaves out what it fetches of t-1.
    assert rooms == pytest.approx({2: 400e6 / 8 / WIRE - 2 * MB, 1: 400e6 / 8 / WIRE})


def _inbound(observed: ClusterLoad) -> dict[tuple[int, str], float]:
    lines = for_rate(observed, 100 * MB).lines
    return {(line.share.broker, line.share.direction): line.share.inbound_bytes_per_s for line in lines}


def test_a_wildcard_counts_the_followers_in_sync_of_what_moves_on_their_side_too() -> None:
    clock = Clock()
    admin = _cluster(clock, {T0: 2.0 * MB})
    admin.assignment = {T0: (1, 3), T1: (1,)}
    admin.configs = {ConfigResource.topic("t"): {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}}
    found = observe(admin, Plan({T0: (2, 3), T1: (3,)}), 10, clock.pauses)
    assert _inbound(found) == pytest.approx({(2, "receive"): 2 * MB, (3, "receive"): 2 * MB, (1, "transmit"): 4 * MB})
    assert found.cautions == ()


def test_topics_whose_lists_the_user_may_not_read_are_a_caution() -> None:
    """Only the plan's topics were read before; a right on every other topic of the cluster is not needed."""
    clock = Clock()
    admin = _cluster(clock, {})
    readable = {"t": {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}}
    what, name = "describe the configuration of topics: other", "TOPIC_AUTHORIZATION_FAILED"

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "topics_configs":
            raise TopicConfigsError(what, name, None, ("other",), readable)

    admin.hook = hook
    found = observe(admin, Plan({T0: (2, 3)}), 1, clock.pauses)
    assert found.cautions == (
        "the lists of 1 topic cannot be read (other): what these list already is not in the estimate",
    )
    assert [copy.receiving for copy in found.copies] == [(3,)]


def test_refused_while_a_reassignment_runs_and_when_a_target_is_dead_or_unknown() -> None:
    clock = Clock()
    admin = _cluster(clock, {})
    with pytest.raises(PlanError, match=r"t-0: brokers \[9\] are its targets but not alive; live are \[1, 2, 3\]"):
        observe(admin, Plan({T0: (9, 3)}), 1, clock.pauses)
    with pytest.raises(PlanError, match="nope-0 does not exist"):
        observe(admin, Plan({TopicPartition("nope", 0): (1,)}), 1, clock.pauses)
    admin.running = {T0: (2, 3)}
    with pytest.raises(PlanError, match=r"1 partition is being reassigned already \(t-0\)"):
        observe(admin, Plan({T0: (2, 3)}), 1, clock.pauses)
    assert clock.now_s == 1000
