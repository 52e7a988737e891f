import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from fakes.admin import FakeAdmin

from testbed.kafka.capabilities import Capability, LacksCapability
from testbed.kafka.errors import KafkaError, ReassignmentError, UnreachableError
from testbed.kafka.types import ConfigResource, PartitionState, TopicPartition
from testbed.reassignment.driver import Driver, DriverError, MoveTimeout
from testbed.reassignment.plan import Plan, PlanError
from testbed.reassignment.progress import Poll
from testbed.signals import Terminated
from testbed.throttle.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, ThrottleError
from testbed.throttle.journal import JournalFolder
from testbed.wait import WaitTimeout

PLAN = Plan({TopicPartition("t", p): (2,) for p in range(3)})
CONTROL = TopicPartition("control", 0)
ORIGINAL = {ConfigResource.broker(2): {FOLLOWER_RATE: "77"}}


def _original(admin: FakeAdmin) -> None:
    admin.configs = {resource: dict(keys) for resource, keys in ORIGINAL.items()}


def _assert_restored(admin: FakeAdmin, journals: JournalFolder) -> None:
    assert admin.configs == ORIGINAL
    assert journals.ids() == []


def test_a_move_from_throttle_to_restore(admin: FakeAdmin, journals: JournalFolder) -> None:
    _original(admin)
    events: list[tuple[str, str, Mapping[str, Any]]] = []
    polls: list[Poll] = []
    plan = Plan({**PLAN.targets, CONTROL: (2,)})
    with Driver(admin, journals, on_event=lambda *event: events.append(event)) as driver:
        driver.execute(plan, 1000, unthrottled={CONTROL})
        assert ConfigResource.topic("control") not in admin.configs
        assert admin.configs[ConfigResource.broker(3)][LEADER_RATE] == "1000"  # live, though not concerned
        seconds = driver.follow(polls.append, timeout_s=5, interval_s=0.001)
    _assert_restored(admin, journals)
    assert driver.restored is not None and driver.restored.interferences == ()
    assert [kind for kind, _, _ in events] == [
        "throttle.set",
        "throttle.in_force",
        "move.started",
        "move.done",
        "throttle.restored",
    ]
    # Two looks with all four listed, one with the logs still there, one without.
    assert [poll.in_flight for poll in polls] == [4, 4, 0, 0]
    assert seconds * 1e6 >= polls[-1].ts_us - polls[0].ts_us


def test_nothing_moves_before_every_broker_has_the_throttle(admin: FakeAdmin, journals: JournalFolder) -> None:
    with Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000)
        names = [name for name, _ in admin.calls]
        alter = names.index("alter_reassignments")
        last_change = alter - 1 - names[:alter][::-1].index("alter_configs")
        asked_since = set(admin.calls[last_change + 1 : alter])
        for broker in (1, 2, 3):
            assert ("broker_configs", (broker,)) in asked_since
            assert ("topics_configs", (("t",), (LEADER_REPLICAS, FOLLOWER_REPLICAS), broker)) in asked_since


def test_the_move_is_not_started_when_a_broker_does_not_get_the_throttle(
    admin: FakeAdmin, journals: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.reassignment.driver.IN_FORCE_S", 0)
    admin.deaf_brokers = frozenset({3})
    with pytest.raises(ThrottleError, match="broker 3 reports"), Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000)
    assert "alter_reassignments" not in [name for name, _ in admin.calls]
    assert admin.configs == {}
    assert journals.ids() == []


def test_without_a_throttle_no_configuration_is_touched(admin: FakeAdmin, journals: JournalFolder) -> None:
    with Driver(admin, journals) as driver:
        driver.execute(PLAN, None)
        driver.follow(timeout_s=5, interval_s=0.001)
    assert "alter_configs" not in [name for name, _ in admin.calls]


def _calls_of_a_whole_move() -> int:
    admin = FakeAdmin({TopicPartition("t", p): (1,) for p in range(3)})
    _original(admin)
    with Driver(admin, JournalFolder()) as driver:
        driver.execute(PLAN, 1000)
        driver.follow(timeout_s=5, interval_s=0.001)
        return len(admin.calls)


@pytest.mark.parametrize("error", [KafkaError("injected", "UNKNOWN_SERVER_ERROR"), KeyboardInterrupt()])
def test_the_configuration_is_restored_after_a_failure_at_any_call(
    admin: FakeAdmin,
    journals: JournalFolder,
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    total = _calls_of_a_whole_move()
    assert total > 20
    for failing in range(1, total + 1):
        broken = FakeAdmin({TopicPartition("t", p): (1,) for p in range(3)})
        _original(broken)
        raised: list[int] = []

        def hook(_call: str, _args: tuple[object, ...], admin: FakeAdmin = broken, raised: list[int] = raised) -> None:
            if len(admin.calls) == failing and not raised:  # noqa: B023
                raised.append(failing)  # noqa: B023
                raise error

        broken.hook = hook
        # What the cluster does not tell of a move that is being followed is the driver's own error.
        expected = (type(error), DriverError) if isinstance(error, KafkaError) else type(error)
        with pytest.raises(expected), Driver(broken, journals) as driver:
            driver.execute(PLAN, 1000)
            driver.follow(timeout_s=5, interval_s=0.001)
        _assert_restored(broken, journals)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_during_the_move_restores(
    admin: FakeAdmin, journals: JournalFolder, number: int, expected: type[BaseException]
) -> None:
    _original(admin)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(expected), Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000)
        driver.follow(lambda _poll: os.kill(os.getpid(), number), timeout_s=5, interval_s=0.001)
    _assert_restored(admin, journals)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_during_the_restore_waits_for_its_end(admin: FakeAdmin, journals: JournalFolder) -> None:
    _original(admin)
    with pytest.raises(KeyboardInterrupt), Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000)
        sent: list[str] = []

        def hook(call: str, _args: tuple[object, ...]) -> None:
            if call == "alter_configs" and not sent:
                sent.append(call)
                os.kill(os.getpid(), signal.SIGINT)

        admin.hook = hook
    assert sent == ["alter_configs"]
    _assert_restored(admin, journals)


def test_a_failed_restore_is_added_to_the_error_under_way(admin: FakeAdmin, journals: JournalFolder) -> None:
    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "alter_configs":
            raise UnreachableError("alter", "REQUEST_TIMED_OUT", "10 s")

    with pytest.raises(ZeroDivisionError) as caught, Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000)
        admin.hook = hook
        raise ZeroDivisionError
    assert "the throttle was not wholly removed" in caught.value.__notes__[0]
    assert len(journals.ids()) == 1


def test_cancel_on_error_cancels_what_has_not_arrived(admin: FakeAdmin, journals: JournalFolder) -> None:
    with pytest.raises(ZeroDivisionError), Driver(admin, journals, cancel_on_error=True) as driver:
        driver.execute(PLAN, 1000)
        raise ZeroDivisionError
    assert admin.running == {}
    assert admin.calls[-1][0] != "alter_reassignments"  # the throttle went last
    assert journals.ids() == []


def test_refused_while_another_reassignment_runs(admin: FakeAdmin, journals: JournalFolder) -> None:
    admin.running = {CONTROL: (2,)}
    with (
        pytest.raises(DriverError, match=r"1 partition is being reassigned already \(control-0\)"),
        Driver(admin, journals) as driver,
    ):
        driver.execute(PLAN, 1000)
    assert "alter_configs" not in [name for name, _ in admin.calls]


def test_refused_when_a_target_is_not_alive(admin: FakeAdmin, journals: JournalFolder) -> None:
    admin.broker_ids = (1, 3)
    with pytest.raises(DriverError, match=r"brokers \[2\] are targets of the plan but not alive; live are \[1, 3\]"):
        Driver(admin, journals).execute(PLAN, None)


def test_refused_when_log_folders_are_chosen(admin: FakeAdmin, journals: JournalFolder) -> None:
    tp = TopicPartition("t", 0)
    with pytest.raises(PlanError, match="log_dirs other than 'any' are not supported: t-0"):
        Driver(admin, journals).execute(Plan({tp: (2,)}, {tp: ("/data",)}), None)


def test_partitions_that_the_controller_refuses_are_named(admin: FakeAdmin, journals: JournalFolder) -> None:
    admin.refused = {TopicPartition("t", 1): "INVALID_REPLICA_ASSIGNMENT"}
    with (
        pytest.raises(ReassignmentError, match="failed for 1 of 3 partitions: INVALID_REPLICA_ASSIGNMENT for t-1"),
        Driver(admin, journals) as driver,
    ):
        driver.execute(PLAN, 1000)
    assert admin.configs == {}


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"polls_needed": 10**9}, "t-0: still being reassigned"),
        ({"isr_lacks": frozenset({2})}, r"t-0: ISR \[\] lacks \[2\]"),
        ({"polls_to_delete": 10**9}, "t-0: the old replica on broker 1 is still there"),
    ],
)
def test_a_move_that_does_not_end_says_what_is_missing(
    admin: FakeAdmin, journals: JournalFolder, changes: dict[str, Any], missing: str
) -> None:
    for name, value in changes.items():
        setattr(admin, name, value)
    with (
        pytest.raises(MoveTimeout, match=f"not done after 0.05 s:\n  {missing}"),
        Driver(admin, journals) as driver,
    ):
        driver.execute(PLAN, None)
        driver.follow(timeout_s=0.05, interval_s=0.005)


def test_a_losing_broker_without_an_answer_is_not_taken_for_done(admin: FakeAdmin, journals: JournalFolder) -> None:
    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "log_dirs":
            raise UnreachableError("describe the log folders of broker 1", "REQUEST_TIMED_OUT")

    admin.hook = hook
    with (
        pytest.raises(DriverError, match="t-0: the old replica on broker 1 cannot be seen: no answer"),
        Driver(admin, journals) as driver,
    ):
        driver.execute(PLAN, None)
        driver.follow(timeout_s=0.5, interval_s=0.005)  # long enough for two polls on a busy machine


def test_a_look_without_an_answer_is_not_the_end(admin: FakeAdmin, journals: JournalFolder) -> None:
    failures = iter([True, True])

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "partitions" and admin.running and next(failures, False):
            raise UnreachableError("describe topics", "REQUEST_TIMED_OUT")

    admin.polls_needed = 4
    polls: list[Poll] = []
    with Driver(admin, journals) as driver:
        driver.execute(PLAN, None)
        admin.hook = hook
        driver.follow(polls.append, timeout_s=5, interval_s=0.001)
    assert len(polls) >= 2
    assert next(failures, None) is None


def test_a_plan_already_fulfilled_is_done_at_once(admin: FakeAdmin, journals: JournalFolder) -> None:
    with Driver(admin, journals) as driver:
        assert driver.execute(Plan({TopicPartition("t", 0): (1,)}), 1000) == ()
        polls: list[Poll] = []
        driver.follow(polls.append, timeout_s=1)
        assert polls[0].in_flight == 0
    assert LEADER_REPLICAS not in str(admin.configs)


def test_one_driver_one_plan(admin: FakeAdmin, journals: JournalFolder) -> None:
    driver = Driver(admin, journals)
    with pytest.raises(DriverError, match="nothing to follow"):
        driver.follow(timeout_s=1)
    driver.execute(PLAN, None)
    with pytest.raises(DriverError, match="has carried out a plan already"):
        driver.execute(PLAN, None)


@pytest.mark.parametrize(
    "error",
    [
        WaitTimeout("b1 to be back in sync", 60.0, ["t-0"]),
        UnreachableError("restart", "REQUEST_TIMED_OUT"),
        KafkaError("alter", "INVALID_REQUEST"),
        ZeroDivisionError("division by zero"),
    ],
)
def test_what_a_callback_raises_is_raised_as_it_is(admin: FakeAdmin, journals: JournalFolder, error: Exception) -> None:
    calls: list[Poll] = []

    def on_poll(poll: Poll) -> None:
        calls.append(poll)
        raise error

    with pytest.raises(type(error)) as raised, Driver(admin, journals) as driver:
        driver.execute(PLAN, 1000)
        driver.follow(on_poll, timeout_s=5, interval_s=0.001)
    assert raised.value is error and len(calls) == 1
    assert admin.configs == {}


def test_what_the_cluster_refuses_to_tell_is_the_driver_s_error(admin: FakeAdmin, journals: JournalFolder) -> None:
    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "reassignments" and admin.running:
            raise KafkaError("list reassignments", "CLUSTER_AUTHORIZATION_FAILED")

    with pytest.raises(DriverError, match="cannot be followed: list reassignments: CLUSTER_AUTH") as raised:
        driver = Driver(admin, journals)
        driver.execute(PLAN, None)
        admin.hook = hook
        driver.follow(timeout_s=5, interval_s=0.001)
    assert isinstance(raised.value.__cause__, KafkaError)


def test_a_topic_deleted_while_it_moves_is_named_once_the_others_have_arrived(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    admin.polls_needed = 6
    polls: list[Poll] = []

    def on_poll(poll: Poll) -> None:
        polls.append(poll)
        if len(polls) == 2:
            del admin.assignment[CONTROL], admin.running[CONTROL]

    def hook(call: str, args: tuple[object, ...]) -> None:
        if call == "partitions" and CONTROL not in admin.assignment and "control" in args[0]:  # type: ignore[operator]
            raise KafkaError("describe topic 'control'", "UNKNOWN_TOPIC_OR_PARTITION")

    admin.hook = hook
    with pytest.raises(DriverError, match="deleted: control; what was moved of other topics has arrived"):
        driver = Driver(admin, journals)
        driver.execute(Plan({**PLAN.targets, CONTROL: (2,)}), None)
        driver.follow(on_poll, timeout_s=60, interval_s=0.001)
    assert all(admin.assignment[tp] == (2,) for tp in PLAN.targets)
    assert [poll.in_flight for poll in polls][:3] == [4, 4, 3]


def test_a_topic_deleted_and_made_again_is_another_one_and_said_to_be_at_once(
    admin: FakeAdmin, journals: JournalFolder
) -> None:
    admin.polls_needed = 6
    polls: list[Poll] = []
    told: list[tuple[int, object]] = []

    def on_poll(poll: Poll) -> None:
        polls.append(poll)
        if len(polls) == 2:
            del admin.running[CONTROL]
            admin.topic_ids["control"] = "another"  # it lies where it lay before: its target is never reached

    def on_event(_kind: str, name: str, detail: object) -> None:
        if name == "deleted":
            told.append((len(polls), detail))

    with pytest.raises(DriverError, match=r"deleted: control \(made again since\); what was moved of other topics"):
        driver = Driver(admin, journals, on_event=on_event)
        driver.execute(Plan({**PLAN.targets, CONTROL: (2,)}), None)
        driver.follow(on_poll, timeout_s=60, interval_s=0.001)
    assert told == [(2, {"why": "topic control was deleted and made again: it is another one"})]
    assert all(admin.assignment[tp] == (2,) for tp in PLAN.targets)


def test_a_topic_that_one_look_does_not_find_is_not_gone(admin: FakeAdmin, journals: JournalFolder) -> None:
    looks = iter([False, True, False])

    def hook(call: str, _args: tuple[object, ...]) -> None:
        if call == "partitions" and next(looks, False):
            raise KafkaError("describe topic 't'", "UNKNOWN_TOPIC_OR_PARTITION")

    driver = Driver(admin, journals)
    admin.polls_needed = 0
    driver.execute(PLAN, None)
    admin.hook = hook
    driver.follow(timeout_s=60, interval_s=0.001)
    assert next(looks, None) is None


@dataclass
class Shared(FakeAdmin):
    """A cluster on shared storage: a move is never listed, and done when the target leads, some looks later."""

    looks: int = 0
    leads: dict[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.leads = {tp: replicas[0] for tp, replicas in self.assignment.items()}

    def alter_reassignments(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        self._note("alter_reassignments", dict(targets))
        self.assignment |= {tp: tuple(target) for tp, target in targets.items() if target is not None}

    def partitions(self, topics: Sequence[str]) -> dict[TopicPartition, PartitionState]:
        self.looks += 1
        if self.looks > 3:
            self.leads = {tp: replicas[0] for tp, replicas in self.assignment.items()}
        return {
            tp: replace(state, leader=self.leads[tp] if self.leads[tp] in state.replicas else None)
            for tp, state in super().partitions(topics).items()
        }


@pytest.fixture
def shared() -> Shared:
    return Shared({TopicPartition("t", p): (1,) for p in range(3)})


ON_SHARED = frozenset({Capability.SHARED_STORAGE})


def test_on_shared_storage_a_move_is_done_when_the_target_leads(shared: Shared, journals: JournalFolder) -> None:
    polls: list[Poll] = []
    with Driver(shared, journals, able=ON_SHARED) as driver:
        driver.execute(PLAN, None)
        driver.follow(polls.append, timeout_s=5, interval_s=0.001)
    assert [poll.in_flight for poll in polls] == [3, 3, 0]
    # Where nothing is copied no log is left behind to be looked for.
    assert "log_dirs" not in {name for name, _args in shared.calls}


def test_on_shared_storage_replicas_alone_are_not_an_arrival(shared: Shared, journals: JournalFolder) -> None:
    shared.looks = -1_000_000
    with (
        pytest.raises(DriverError, match="is not done after 0.02 s:\n  t-0: led by no broker, not by 2"),
        Driver(shared, journals, able=ON_SHARED, cancel_on_error=True) as driver,
    ):
        driver.execute(PLAN, None)
        driver.follow(timeout_s=0.02, interval_s=0.001)
    # What cannot be cancelled is not tried to be.
    assert [name for name, _args in shared.calls].count("alter_reassignments") == 1


def test_what_shared_storage_lacks_is_refused_before_anything_is_changed(
    shared: Shared, journals: JournalFolder
) -> None:
    with Driver(shared, journals, able=ON_SHARED) as driver:
        with pytest.raises(
            LacksCapability, match="a throttled move is not possible with this cluster, which lacks thro"
        ):
            driver.execute(PLAN, 1000)
        with pytest.raises(LacksCapability, match=r"t-0 with replicas on \[1, 2\] is not possible .* lacks replicates"):
            driver.execute(Plan({TopicPartition("t", 0): (1, 2)}), None)
        with pytest.raises(LacksCapability, match="cancelling a move is not possible"):
            driver.cancel()
    assert not {name for name, _args in shared.calls} & {"alter_reassignments", "alter_configs"}
