"""Following a move on a fake cluster: lag, rates against quotas, what is raised and what is put back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.admin import FakeAdmin

from testbed.cli.throttle_report import event_text
from testbed.kafka.command_config import CommandConfig
from testbed.kafka.errors import LogDirError, UnreachableError
from testbed.kafka.types import ConfigResource, PartitionState, Reassignment, ReplicaLog, TopicPartition
from testbed.owner import Owner
from testbed.reassignment import auto_raise
from testbed.reassignment.auto_raise import MonitorEvent, ThrottleRaise, ThrottleRaiser, next_rate, watch
from testbed.reassignment.lag import PollClock
from testbed.reassignment.monitor import MonitorReading
from testbed.throttle import recovery as recovering
from testbed.throttle.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ListedReplicas,
    unthrottled_partitions,
)
from testbed.throttle.journal import JournalFolder, ThrottleJournal
from testbed.throttle.recovery import RESTORE_TIMEOUT_S, RestoreError, RestoreResult

MB = 10**6
T0 = TopicPartition("t", 0)
RATE_KEYS = (LEADER_RATE, FOLLOWER_RATE)


class Cluster(FakeAdmin):
    """t-0 is led by 1, followed by 3, and moves to 2: as fast as its throttle lets it, in time that is simulated."""

    def __init__(self, whole_mb: float = 100, inbound_mb: float = 0.0, quota_mb: float | None = 10.0) -> None:
        super().__init__({T0: (1, 3)}, polls_needed=10**9)
        self.now_s = 0.0
        self.whole, self.copied = whole_mb * MB, 0.0
        self.inbound = inbound_mb * MB
        self.running = {T0: (2, 3)}
        self.size_of = lambda broker, _tp: round(self.copied if broker == 2 else self.whole)
        self.stale_logs = {T0: (2,)}
        self.polls_to_delete = 10**9
        self.isr_lacks = frozenset({2})
        if quota_mb is not None:
            self.quota(round(quota_mb * MB))
        self.configs[ConfigResource.topic("t")] = {LEADER_REPLICAS: "0:1,0:3", FOLLOWER_REPLICAS: "0:2"}

    def quota(self, rate: int) -> None:
        for broker in (1, 2):
            self.configs[ConfigResource.broker(broker)] = dict.fromkeys(RATE_KEYS, str(rate))

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        leader, follower = (
            float(self.configs.get(ConfigResource.broker(b), {}).get(key, 100 * MB))
            for b, key in ((1, LEADER_RATE), (2, FOLLOWER_RATE))
        )
        # The leader's quota counts what its follower in sync fetches, too.
        rate = max(0.0, min(follower, leader - self.inbound))
        self.whole += self.inbound * seconds
        self.copied = min(self.whole, self.copied + rate * seconds)
        if self.copied >= self.whole:
            self.running.clear()

    def rates(self) -> list[str | None]:
        return [self.configs.get(ConfigResource.broker(b), {}).get(key) for b in (1, 2) for key in RATE_KEYS]


def follow(
    cluster: Cluster,
    journals: JournalFolder,
    *,
    most: int | None = None,
    once: bool = False,
    each: Callable[[MonitorReading], None] = lambda _look: None,
) -> list[MonitorEvent]:
    told: list[MonitorEvent] = []

    def tell(one: MonitorEvent) -> None:
        told.append(one)
        if isinstance(one, MonitorReading):
            each(one)

    pauses = PollClock(lambda: cluster.now_s, cluster.sleep)
    watch(cluster, tell, journals, interval_s=1.0, patience_s=20.0, most_bytes_per_s=most, once=once, pauses=pauses)
    return told


def looks(told: list[MonitorEvent]) -> list[MonitorReading]:
    return [one for one in told if isinstance(one, MonitorReading)]


def test_progress_rates_and_time_left_of_a_move(journals: JournalFolder) -> None:
    cluster = Cluster(whole_mb=300, inbound_mb=1)
    found = looks(follow(cluster, journals))
    at = found[30]
    assert (at.partitions, at.partitions_done, at.done) == (1, 0, False)
    # 10 MB/s less what the follower in sync gets: 9 MB/s are copied, 8 MB/s of them are progress.
    assert at.copied_bytes == pytest.approx(270 * MB)
    assert at.lag_bytes == pytest.approx((300 + 30 - 270) * MB)
    assert {(r.broker, r.direction): r.bytes_per_s / MB for r in at.rates} == pytest.approx(
        {(1, "transmit"): 10, (2, "receive"): 9}
    )
    assert {r.quota_bytes_per_s for r in at.rates} == {10 * MB}
    assert at.remaining is not None
    assert at.remaining.seconds == pytest.approx(60 / 8)
    assert at.remaining.low_s <= at.remaining.seconds <= at.remaining.high_s
    assert (at.stall, at.too_low, at.unthrottled, at.silent) == (None, (), (), ())
    assert found[-1].done and found[-1].lag_bytes == 0
    assert [look.remaining for look in found[:22]] == [None] * 22


def test_nothing_that_moves_is_said_at_once(journals: JournalFolder) -> None:
    cluster = Cluster()
    cluster.running.clear()
    [only] = looks(follow(cluster, journals))
    assert only.done and only.partitions == 0 and cluster.now_s == 0


def test_a_rest_between_two_batches_is_not_the_end(journals: JournalFolder) -> None:
    cluster = Cluster()
    told: list[MonitorEvent] = []
    asked: list[float] = []

    def more() -> str:
        asked.append(cluster.now_s)
        if len(asked) == 3:  # the next batch begins
            cluster.running, cluster.copied = {T0: (2, 3)}, 0.0
        return "waiting for its next step" if len(asked) <= 3 else ""

    pauses = PollClock(lambda: cluster.now_s, cluster.sleep)
    watch(cluster, told.append, journals, interval_s=1.0, pauses=pauses, more=more)
    assert [one for one in told if isinstance(one, str)] == ["waiting for its next step"]
    assert [look.at_s for look in looks(told) if look.done] == [asked[-1]]
    assert asked[-1] >= asked[2] + 10  # 100 MB at 10 MB/s once more


def test_once_tells_one_look_with_rates(journals: JournalFolder) -> None:
    [only] = follow(Cluster(), journals, once=True)
    assert isinstance(only, MonitorReading)
    assert max(rate.bytes_per_s for rate in only.rates) == 10 * MB


def test_what_is_written_at_or_above_the_quota_is_named_before_it_is_stuck(journals: JournalFolder) -> None:
    [only] = follow(Cluster(inbound_mb=6, quota_mb=10), journals, once=True)
    assert isinstance(only, MonitorReading)
    [share] = only.too_low
    assert (share.broker, share.direction, share.inbound_bytes_per_s) == (1, "transmit", pytest.approx(12 * MB))


@pytest.mark.parametrize(
    ("lists", "directions"),
    [
        ({LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}, ["receive", "transmit"]),
        ({FOLLOWER_REPLICAS: "0:2"}, ["receive"]),
        ({LEADER_REPLICAS: "0:1"}, ["transmit"]),
        ({LEADER_REPLICAS: "0:3", FOLLOWER_REPLICAS: "1:2"}, []),
        ({}, []),
    ],
)
def test_a_quota_that_does_not_count_a_replica_is_not_too_low_for_it(
    lists: Mapping[str, str], directions: list[str], journals: JournalFolder
) -> None:
    """A rate that was left behind throttles nothing: `watch` said *never makes progress* of a move at full speed.

    Nor is it a quota that `--auto-raise` begins with.
    """
    cluster = Cluster(inbound_mb=6, quota_mb=4)
    cluster.configs[ConfigResource.topic("t")] = dict(lists)
    [only] = follow(cluster, journals, once=True)
    assert isinstance(only, MonitorReading)
    assert [share.direction for share in only.too_low] == directions
    assert {rate.direction for rate in only.rates if rate.quota_bytes_per_s is not None} == set(directions)
    assert only.lowest_quota == (4 * MB if directions else None)


def test_a_stuck_move_is_raised_in_steps_up_to_the_most_and_put_back(journals: JournalFolder) -> None:
    cluster = Cluster(inbound_mb=6, quota_mb=4)
    seen: list[str] = []

    def each(_look: MonitorReading) -> None:
        seen.extend(rate for rate in cluster.rates() if rate is not None)
        if journals.ids():
            assert [journals.read(journals.ids()[0]).changes[0].original] == [str(4 * MB)]

    told = follow(cluster, journals, most=25 * MB, each=each)
    first_stuck = next(look for look in looks(told) if look.stall)
    assert first_stuck.stall is not None and first_stuck.stall.seconds == 20
    raised = [one for one in told if isinstance(one, ThrottleRaise)]
    assert raised == [ThrottleRaise(18 * MB, (1, 2))]  # half as much again as the 12 MB/s that come in
    assert max(map(int, seen)) <= 25 * MB
    assert cluster.rates() == [str(4 * MB)] * 4
    assert journals.ids() == []
    assert isinstance(told[-1], RestoreResult) and len(told[-1].changes) == 4


def test_the_most_is_never_exceeded_and_the_end_of_raising_is_said_once(journals: JournalFolder) -> None:
    cluster = Cluster(inbound_mb=50, quota_mb=4)
    highest: list[int] = []

    def each(_look: MonitorReading) -> None:
        highest.append(max(int(rate) for rate in cluster.rates() if rate is not None))
        if cluster.now_s > 200:
            cluster.running.clear()  # somebody cancels it

    told = follow(cluster, journals, most=9 * MB, each=each)
    assert max(highest) == 9 * MB
    assert [one for one in told if isinstance(one, str)] == ["stalled with the throttle as high as --auto-raise allows"]
    assert cluster.rates() == [str(4 * MB)] * 4


def test_without_a_throttle_there_is_nothing_to_raise(journals: JournalFolder) -> None:
    cluster = Cluster(inbound_mb=0, quota_mb=None)
    cluster.sleep = lambda seconds: setattr(cluster, "now_s", cluster.now_s + seconds)  # type: ignore[method-assign]

    def each(look: MonitorReading) -> None:
        assert all(rate.quota_bytes_per_s is None for rate in look.rates)
        if cluster.now_s > 40:
            cluster.running.clear()

    told = follow(cluster, journals, most=9 * MB, each=each)
    assert [one for one in told if isinstance(one, str)] == [
        "stalled, and no throttle is in force on its brokers: there is nothing to raise"
    ]
    assert cluster.rates() == [None] * 4


def test_what_was_raised_is_put_back_after_an_interrupt(journals: JournalFolder) -> None:
    cluster = Cluster(inbound_mb=6, quota_mb=4)

    def each(_look: MonitorReading) -> None:
        if cluster.rates()[0] != str(4 * MB):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow(cluster, journals, most=25 * MB, each=each)
    assert cluster.rates() == [str(4 * MB)] * 4
    assert journals.ids() == []


def test_the_quota_of_a_broker_without_an_answer_is_not_known_and_raising_goes_on(journals: JournalFolder) -> None:
    """From its silence `watch` concluded that no throttle is in force, and raised nothing afterwards."""
    cluster = Cluster(inbound_mb=6, quota_mb=4)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if cluster.now_s < 30 and call == "broker_configs" and args[0] in (1, 2):
            raise UnreachableError(f"describe the configuration of broker {args[0]}", "REQUEST_TIMED_OUT")

    cluster.hook = hook
    told = follow(cluster, journals, most=25 * MB)
    first, *_, last = looks(told)
    assert (first.silent, {rate.quota_bytes_per_s for rate in first.rates}) == ((1, 2), {None})
    shown = event_text(first)
    assert "(quota not known)" in shown and "(no quota)" not in shown
    assert not [one for one in told if isinstance(one, str)]
    assert any(isinstance(one, ThrottleRaise) for one in told) and last.done


def test_a_broker_that_does_not_answer_a_raise_is_told_and_the_watching_goes_on(journals: JournalFolder) -> None:
    cluster = Cluster(inbound_mb=6, quota_mb=4)
    refused = iter(range(1))

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs" and next(refused, None) is not None:
            raise UnreachableError("alter the configuration of broker 1", "REQUEST_TIMED_OUT")

    cluster.hook = hook
    told = follow(cluster, journals, most=25 * MB)
    assert [one for one in told if isinstance(one, str)] == ["alter the configuration of broker 1: REQUEST_TIMED_OUT"]
    assert any(isinstance(one, ThrottleRaise) for one in told) and looks(told)[-1].done
    assert cluster.rates() == [str(4 * MB)] * 4


@pytest.mark.parametrize("begin_s", [0, 10])
def test_a_leader_that_is_missing_or_silent_for_a_while_makes_no_move_stuck(
    begin_s: int, journals: JournalFolder
) -> None:
    """What was missing counted as nothing: the lag was lowest then, and the move seemed stuck afterwards."""
    cluster = Cluster(whole_mb=600)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if begin_s <= cluster.now_s < begin_s + 3 and call == "log_dirs" and args == ((1,),):
            raise UnreachableError("describe the log folders of broker 1", "REQUEST_TIMED_OUT")

    def states(topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
        found = FakeAdmin.partitions(cluster, topics)
        if begin_s and begin_s <= cluster.now_s < begin_s + 3:
            return {tp: replace(state, leader=None) for tp, state in found.items()}
        return found

    cluster.hook = hook
    cluster.partitions = states  # type: ignore[method-assign]
    found = looks(follow(cluster, journals))
    assert found[-1].done
    assert not [look for look in found if look.stall]


def test_a_silent_broker_and_a_silent_cluster_are_told_and_the_watching_goes_on(journals: JournalFolder) -> None:
    cluster = Cluster(whole_mb=300)

    def hook(call: str, args: tuple[object, ...]) -> None:
        if 5 <= cluster.now_s < 8 and call == "log_dirs" and args == ((2,),):
            raise UnreachableError("describe the log folders of broker 2", "REQUEST_TIMED_OUT")
        if 10 <= cluster.now_s < 12:
            raise UnreachableError("list reassignments", "REQUEST_TIMED_OUT")

    cluster.hook = hook
    told = follow(cluster, journals)
    silent = [look for look in looks(told) if look.silent]
    assert [look.silent for look in silent] == [(2,)] * 3
    assert len({look.lag_bytes for look in silent}) == 1
    assert [one for one in told if isinstance(one, str)] == ["list reassignments: REQUEST_TIMED_OUT"] * 2
    assert looks(told)[-1].done
    cluster = Cluster()
    cluster.hook = hook
    cluster.now_s = 10
    with pytest.raises(UnreachableError):
        follow(cluster, journals, once=True)


def test_a_log_folder_that_is_offline_is_told_once_and_the_watching_goes_on(journals: JournalFolder) -> None:
    cluster = Cluster()

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "log_dirs" and args == ((1,),):
            others = {1: {T0: ReplicaLog(round(cluster.whole), False)}}
            raise LogDirError("describe the log folders of broker 1, /disk1", "KAFKA_STORAGE_ERROR", others)

    cluster.hook = hook
    told = follow(cluster, journals)
    assert [one for one in told if isinstance(one, str)] == [
        "describe the log folders of broker 1, /disk1: KAFKA_STORAGE_ERROR; the replicas there count as missing"
    ]
    first, *_, last = looks(told)
    assert (first.lag_bytes, first.silent, last.done) == (100 * MB, (), True)


def test_a_move_that_is_added_is_judged_anew(journals: JournalFolder) -> None:
    cluster = Cluster(inbound_mb=6, quota_mb=4)
    added = TopicPartition("t", 1)

    def each(look: MonitorReading) -> None:
        if cluster.now_s == 15:
            cluster.assignment[added] = (1, 3)
            cluster.running[added] = (2, 3)
        assert look.stall is None or cluster.now_s >= 16 + 20
        if look.stall:
            cluster.running.clear()

    assert looks(follow(cluster, journals, each=each))[-1].done


def test_other_replicas_added_to_the_same_partition_are_judged_anew(journals: JournalFolder) -> None:
    cluster = Cluster(inbound_mb=6, quota_mb=4)

    def each(look: MonitorReading) -> None:
        if cluster.now_s in (15, 30):  # there and back: neither target was under way at the look before
            cluster.running[T0] = (4, 3) if cluster.now_s == 15 else (2, 3)
        assert look.stall is None or cluster.now_s >= 31 + 20
        if look.stall:
            cluster.running.clear()

    cluster.broker_ids = (1, 2, 3, 4)
    assert looks(follow(cluster, journals, each=each))[-1].done


@pytest.mark.parametrize(
    ("lists", "named"),
    [
        ({LEADER_REPLICAS: "0:1,0:3", FOLLOWER_REPLICAS: "0:2"}, False),
        ({LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"}, False),
        ({LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"}, True),
        ({LEADER_REPLICAS: "0:1,0:3"}, True),
        ({}, True),
    ],
)
def test_partitions_that_move_unthrottled_are_named(lists: Mapping[str, str], named: bool) -> None:
    running = {T0: Reassignment((2, 3, 1), (2,), (1,))}
    assert unthrottled_partitions(running, ListedReplicas({"t": lists})) == ((T0,) if named else ())


# -- raising -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "needed", "most", "expected"),
    [
        (10, 0, 100, 15),
        (10, 40, 100, 60),
        (10, 90, 100, 100),
        (90, 0, 100, 100),
        (100, 0, 100, None),
        (120, 0, 100, None),
    ],
)
def test_the_next_step(rate: int, needed: float, most: int, expected: int | None) -> None:
    assert next_rate(rate, needed, most) == expected


def test_only_what_is_below_is_raised_and_a_broker_without_a_rate_stays_without(journals: JournalFolder) -> None:
    cluster = Cluster(quota_mb=None)
    cluster.configs[ConfigResource.broker(1)] = {LEADER_RATE: "5", FOLLOWER_RATE: "50"}
    raised = ThrottleRaiser(cluster, journals)
    assert raised.to(20, [1, 2, 3]) == (1,)
    assert cluster.rates() == ["20", "50", None, None]
    assert raised.to(20, [1, 2, 3]) == ()
    assert len(raised.restore().changes) == 1
    assert cluster.rates() == ["5", "50", None, None]
    assert raised.restore() == RestoreResult()


def test_the_journal_is_on_disk_before_each_raise_and_knows_every_value_as_ours(journals: JournalFolder) -> None:
    cluster = Cluster(quota_mb=1)
    at_alter: list[ThrottleJournal] = []

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs":
            at_alter.append(journals.read(journals.ids()[0]))

    cluster.hook = hook
    raised = ThrottleRaiser(cluster, journals, "/etc/client.properties")
    raised.to(2 * MB, [1])
    raised.to(3 * MB, [1])
    last = at_alter[-1]
    assert last.command_config == "/etc/client.properties"
    assert [(c.original, c.value, c.earlier) for c in last.changes] == [(str(MB), str(3 * MB), (str(2 * MB),))] * 2
    raised.restore()
    assert cluster.rates() == [str(MB)] * 4


def test_what_somebody_else_has_set_or_removed_since_is_left_as_it_is(journals: JournalFolder) -> None:
    cluster = Cluster(quota_mb=1)
    raised = ThrottleRaiser(cluster, journals)
    raised.to(2 * MB, [1, 2])
    cluster.configs[ConfigResource.broker(1)] = {LEADER_RATE: "7"}
    raised.restore()
    assert cluster.rates() == ["7", None, str(MB), str(MB)]
    raised.to(2 * MB, [1])
    cluster.configs[ConfigResource.broker(1)][LEADER_RATE] = "8"
    raised.to(3 * MB, [1])  # now that is what was there
    raised.restore()
    assert cluster.rates() == ["8", None, str(MB), str(MB)]


def test_brokers_have_as_long_for_the_rates_of_before_as_after_a_move(
    journals: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def restored(_admin: object, _changes: object, timeout_s: float) -> RestoreResult:
        waited.append(timeout_s)
        return RestoreResult()

    monkeypatch.setattr(auto_raise, "restore", restored)
    raised = ThrottleRaiser(Cluster(quota_mb=1), journals)
    raised.to(2 * MB, [1])
    raised.restore()
    assert waited == [RESTORE_TIMEOUT_S]


def test_what_cannot_be_put_back_keeps_its_journal(journals: JournalFolder) -> None:
    cluster = Cluster(quota_mb=1)
    raised = ThrottleRaiser(cluster, journals)
    raised.to(2 * MB, [1, 2])

    def hook(_call: str, args: tuple[object, ...]) -> None:
        if args and args[0] in (1, ConfigResource.broker(1)):
            raise UnreachableError("broker 1", "REQUEST_TIMED_OUT")

    cluster.hook = hook
    with pytest.raises(RestoreError, match="broker 1: REQUEST_TIMED_OUT"):
        raised.restore()
    assert len(journals.ids()) == 1
    assert cluster.rates() == [str(2 * MB)] * 2 + [str(MB)] * 2


def test_recover_connects_as_the_journal_s_file_says_and_keeps_it_when_the_file_is_gone(
    journals: JournalFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, CommandConfig | None]] = []
    cluster = Cluster(quota_mb=1)

    def admin(bootstrap: str, *, timeout_s: float, security: CommandConfig | None) -> Cluster:
        made.append((bootstrap, security))
        return cluster

    monkeypatch.setattr(recovering, "Admin", admin)
    monkeypatch.setattr(Owner, "alive", lambda _owner: False)
    file = tmp_path / "client.properties"
    raised = ThrottleRaiser(cluster, journals, str(file))
    raised.to(2 * MB, [1])
    [kept] = recovering.recover(recovering.connect, journals)
    assert (kept.outcome, made) == (recovering.RecoveryOutcome.FAILED, [])
    assert f"{file}: No such file" in kept.detail
    file.write_text("security.protocol=SSL\n")
    [done] = recovering.recover(recovering.connect, journals)
    assert done.outcome is recovering.RecoveryOutcome.RESTORED
    [(bootstrap, security)] = made
    assert bootstrap == "fake:9092" and security is not None and security.protocol == "SSL"
    assert cluster.rates() == [str(MB)] * 4
