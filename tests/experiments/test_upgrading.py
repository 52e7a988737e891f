"""Brokers brought to another Kafka while data moves: one at a time, and what does not come back is given back."""

from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from results.criteria.judgement import OWN_ERROR
from testbed.errors import SoftwareError, TestbedError, UsageError
from testbed.experiments import experiment_run, mid_move_actions
from testbed.experiments.catalogue.kip73_upgrade import EXPERIMENT, _action
from testbed.experiments.experiment import read_settings
from testbed.experiments.mid_move_actions import RollingRestart, Upgrade
from testbed.kafka.errors import UnreachableError
from testbed.probes.recorder import Recorder
from testbed.reassignment.driver import DriverError
from testbed.software.kafka import kafka_release
from testbed.topology.find import find
from tests.experiments.running_move import FakeMove


@pytest.fixture
def mover(monkeypatch):
    return FakeMove(monkeypatch)


def begun(mover, **other):
    upgrade = Upgrade(["b3", "b1"], "4.3.1", 10.0, **other)
    with upgrade.around(mover):
        upgrade.started(mover)
    mover.done.clear()
    return upgrade


def test_hosts_follow_each_other_with_a_pause_and_the_last_one_finalizes(mover):
    upgrade = begun(mover, finalize=True)
    mover.at(5, upgrade)
    assert mover.done == []
    mover.missing = ["t-0"]
    mover.at(10, upgrade)
    assert mover.done == [("broker.leaving", "b3"), ("4.3.1", "b3", False), ("broker.back", "b3")]
    assert mover.missing == []
    assert mover.details[-1] == {"leaders_as_planned": True, "before": "4.2.1", "after": "4.3.1"}
    assert upgrade.missing() == "not upgraded: b1"
    mover.done.clear()
    mover.at(19, upgrade)
    mover.at(20, upgrade)
    assert mover.done[1] == ("4.3.1", "b1", True)
    assert upgrade.missing() == ""


def test_what_could_never_join_is_refused_before_anything_is_measured(mover):
    mover.admin = SimpleNamespace(features=lambda: {"metadata.version": 26})
    told = r"4\.3\.1 is no upgrade of 4\.2\.1: the cluster has finalized metadata\.version=26"
    with pytest.raises(UsageError, match=told), Upgrade(["b3"], "4.3.1", 10.0).around(mover):
        pytest.fail("it was begun")


LEVELS = {"4.1.0": 23, "4.2.1": 24, "4.3.1": 25}


@pytest.fixture
def releases(monkeypatch):
    """Three releases, each with its own `metadata.version`."""

    def found(source):
        if source not in LEVELS:
            raise SoftwareError(f"Maven's registry has no Kafka {source}")
        return SimpleNamespace(version=source)

    monkeypatch.setattr(mid_move_actions, "kafka_release", found)
    monkeypatch.setattr(mid_move_actions, "levels_of", lambda release: {"metadata.version": LEVELS[release.version]})


OLDER = (
    r"to=4\.1\.0: 4\.1\.0 is no upgrade of 4\.2\.1: the cluster has finalized metadata\.version=24, the release knows "
    r"metadata\.version=23; begin with an older Kafka\. A downgrade begins with 4\.1\.0"
)


@pytest.mark.parametrize(
    ("to", "error", "told"),
    [
        ("4.1.0", UsageError, OLDER),
        ("4.2.1", UsageError, r"Kafka 4\.2\.1 runs on b3, b2, b1 already"),
        ("4.9.9", SoftwareError, "has no Kafka 4.9.9"),
    ],
)
@pytest.mark.usefixtures("releases")
def test_what_could_never_join_is_refused_before_anything_is_made(monkeypatch, to, error, told):
    """The testbed was made, and the preload written, before the run was refused."""
    monkeypatch.setattr(experiment_run.Testbed, "up", lambda *_words, **_more: pytest.fail("it was made"))
    request = experiment_run.RunRequest("kip73-upgrade", (f"to={to}",), kafka="4.2.1")
    settings = read_settings(EXPERIMENT, "ci", request.settings)
    with ExitStack() as stack, pytest.raises(error, match=told):
        experiment_run._testbed(request, EXPERIMENT, settings, "run-1", stack, print)


@pytest.mark.usefixtures("releases")
def test_a_newer_kafka_is_accepted_and_a_mere_restart_asks_for_none(monkeypatch):
    three = find("three-brokers").with_kafka_version("4.2.1")
    EXPERIMENT.check_kafka(read_settings(EXPERIMENT, "ci", ["to=4.3.1"]), three, None)
    monkeypatch.setattr(mid_move_actions, "kafka_release", pytest.fail)
    EXPERIMENT.check_kafka(read_settings(EXPERIMENT, "ci", []), three, None)


@pytest.mark.usefixtures("releases")
def test_a_testbed_that_is_up_says_which_features_it_has():
    """One that was upgraded has more than its release alone."""

    def up(level, **kafka):
        admin = SimpleNamespace(features=lambda: {"metadata.version": level})
        return SimpleNamespace(state=SimpleNamespace(kafka=kafka), admin=lambda: nullcontext(admin))

    upgrade, topology = Upgrade(["b2", "b1"], "4.2.1", 10.0), find("two-brokers")
    with pytest.raises(UsageError, match=r"no upgrade of 4\.1\.0: the cluster has finalized metadata\.version=25"):
        upgrade.check_kafka(topology, up(25, b1="4.1.0", b2="4.1.0"))
    upgrade.check_kafka(topology, up(23, b1="4.1.0", b2="4.1.0"))


@pytest.mark.usefixtures("releases")
def test_features_are_not_finalized_while_a_controller_stays_behind():
    """The last broker's upgrade was refused during the move: the release was blamed."""
    admin = SimpleNamespace(features=lambda: {"metadata.version": 24})
    kafka = {"c1": "4.2.1", "b1": "4.2.1", "b2": "4.2.1"}
    testbed = SimpleNamespace(state=SimpleNamespace(kafka=kafka), admin=lambda: nullcontext(admin))
    Upgrade(["b2", "b1"], "4.3.1", 10.0).check_kafka(find("two-brokers"), testbed)
    told = r"finalize=yes: c1 would stay at Kafka 4\.2\.1, which lacks features of 4\.3\.1: take a topology"
    with pytest.raises(UsageError, match=told):
        Upgrade(["b2", "b1"], "4.3.1", 10.0, finalize=True).check_kafka(find("two-brokers"), testbed)


def test_machines_that_exist_are_refused_before_the_run():
    """The refused upgrade was a move that was not done: Kafka was blamed."""
    with pytest.raises(UsageError, match="mine is on machines that exist, which have one release: give to=same"):
        Upgrade(["b3"], "4.3.1", 10.0).measured_topology(SimpleNamespace(exists=True, name="mine"))


@pytest.mark.parametrize("down", [False, True])
def test_a_host_that_runs_the_version_already_is_refused(mover, down):
    """It was not restarted, and `brokers-restarted` passed."""
    mover.testbed.state.kafka["b3"] = "4.3.1"
    upgrade = Upgrade(["b3", "b1"], "4.3.1", 10.0, down=down)
    refused = r"^Kafka 4\.3\.1 runs on b3 already.* to=same for mere restarts"
    with pytest.raises(UsageError, match=refused), upgrade.around(mover):
        pytest.fail("it was begun")


def test_a_path_that_is_gone_when_the_run_has_begun_keeps_the_run(mover, monkeypatch, tmp_path):
    """Before the run it is a usage error. Later that error, of exit code 64, lost the samples of the preload."""
    gone = tmp_path / "kafka"
    given = [f"to={gone}"]
    with pytest.raises(UsageError, match=f"there is no Kafka at {gone}"):
        read_settings(EXPERIMENT, "ci", given)
    gone.mkdir()
    upgrade = _action(read_settings(EXPERIMENT, "ci", given), ("b1", "b2", "b3"))
    gone.rmdir()
    mover.testbed.software = SimpleNamespace(kafka=kafka_release)
    monkeypatch.setattr(experiment_run, "explained", lambda *_: nullcontext())
    monkeypatch.setattr(experiment_run, "guarded", lambda *_: nullcontext())

    class Begins:
        def run(self, _context):
            with upgrade.around(mover):
                pytest.fail("it was begun")

    testbed = SimpleNamespace(engine=None, state=None, topology=SimpleNamespace(objectstores=()))
    recorder = Recorder()
    context = SimpleNamespace(testbed=testbed, recorder=recorder, progress=lambda _text: None)
    _result, why = experiment_run._outcome(Begins(), context)
    assert why == (
        f"{OWN_ERROR}there is no Kafka at {gone}: no such file or folder; it was there when the run began: put it "
        "back, and run again"
    )
    assert [event.kind for event in recorder.events()] == ["note"]


def test_every_host_gets_the_build_that_was_there_at_the_beginning(mover):
    """The build at a path may be another one when the next host is upgraded."""
    upgrade = Upgrade(["b3"], "/src/kafka", 10.0)
    with upgrade.around(mover):
        upgrade.started(mover)
    mover.at(10, upgrade)
    assert ("4.3.1", "b3", False) in mover.done


def test_nothing_is_upgraded_once_the_move_is_over(mover):
    upgrade = begun(mover)
    mover.at(30, upgrade, in_flight=0)
    assert mover.done == []
    assert upgrade.missing() == "not upgraded: b3, b1"


def test_a_host_that_does_not_come_back_is_given_back_what_it_had_and_the_move_is_not_done(mover):
    upgrade = begun(mover)
    mover.trouble = [TestbedError("its process ended")]
    with pytest.raises(DriverError, match=r"the upgrade of b3 to Kafka 4\.3\.1 failed: its process ended"):
        mover.at(10, upgrade)
    assert mover.done == [
        ("broker.leaving", "b3"),
        ("4.3.1", "b3", False),
        ("upgrade.failed", "b3"),
        ("killed", "b3"),
        ("4.2.1", "b3", False),
    ]


def test_hosts_that_an_upgrade_leaves_with_different_versions_are_named(mover):
    """The first host was upgraded, the next one got its old version back: the reason named that one alone."""
    upgrade = begun(mover)
    mover.at(10, upgrade)
    mover.trouble = [TestbedError("its process ended")]
    mixed = r"its process ended; the hosts have different versions now: b1 Kafka 4\.2\.1, b2 .*, b3 Kafka 4\.3\.1$"
    with pytest.raises(DriverError, match=mixed):
        mover.at(20, upgrade)


def test_a_host_whose_features_may_be_finalized_is_not_killed(mover):
    upgrade = begun(mover, finalize=True)
    mover.at(10, upgrade)
    mover.trouble = [TestbedError("features are not in force")]
    with pytest.raises(DriverError, match="features are not in force"):
        mover.at(20, upgrade)
    assert ("killed", "b1") not in mover.done


def test_a_host_that_was_not_stopped_yet_is_not_killed(mover, monkeypatch):
    upgrade = begun(mover)

    def refuse(*_words, **_named):
        raise TestbedError("b1 does not serve")

    monkeypatch.setattr(mid_move_actions, "rolling_upgrade", refuse)
    with pytest.raises(DriverError, match="b1 does not serve"):
        mover.at(10, upgrade)
    assert mover.done == [("broker.leaving", "b3"), ("upgrade.failed", "b3")]


def test_a_host_that_does_not_come_back_with_what_it_had_either_is_a_move_not_done(mover):
    upgrade = begun(mover)
    mover.trouble = [TestbedError("its process ended"), TestbedError("cannot read its logs")]
    with pytest.raises(DriverError, match=r"process ended; nor did it come back with Kafka 4\.2\.1: cannot read"):
        mover.at(10, upgrade)


def test_what_got_no_answer_is_asked_again_and_told_once(mover):
    upgrade = begun(mover)
    mover.trouble = [UnreachableError("describe", "REQUEST_TIMED_OUT")]
    with pytest.raises(UnreachableError):
        mover.at(10, upgrade)
    mover.at(11, upgrade)
    assert mover.done.count(("broker.leaving", "b3")) == mover.done.count(("broker.back", "b3")) == 1


@pytest.mark.parametrize(("to", "kind"), [("same", RollingRestart), ("4.3.1", Upgrade)])
def test_the_same_is_a_restart(to, kind):
    assert isinstance(_action({**read_settings(EXPERIMENT, "ci", []), "to": to}, ("b1", "b2", "b3")), kind)


def test_settings_of_the_experiment(tmp_path):
    assert read_settings(EXPERIMENT, "ci", [])["to"] == "same"
    assert read_settings(EXPERIMENT, "ci", [f"to={tmp_path}"])["to"] == str(tmp_path)
    with pytest.raises(TestbedError, match="--set to=4.3: "):
        read_settings(EXPERIMENT, "ci", ["to=4.3"])


def test_down_brings_all_hosts_up_before_the_measurement_and_takes_them_back(mover):
    downgrade = Upgrade(["b3", "b1"], "4.3.1", 10.0, down=True)
    mover.testbed.state.kafka.pop("b2")
    with downgrade.around(mover):
        assert mover.done[-1] == ("4.3.1", "b3", "b1", False)
        assert set(mover.testbed.state.kafka.values()) == {"4.3.1"}
        mover.done.clear()
        downgrade.started(mover)
        mover.at(10, downgrade)
    assert mover.done == [("broker.leaving", "b3"), ("4.2.1", "b3", False), ("broker.back", "b3")]


def test_down_needs_one_version_to_go_back_to(mover):
    mover.testbed.state.kafka["b1"] = "4.1.0"
    downgrade = Upgrade(["b3", "b1"], "4.3.1", 10.0, down=True)
    with pytest.raises(TestbedError, match=r"direction=down: the hosts run 4\.1\.0, 4\.2\.1"), downgrade.around(mover):
        pass


@pytest.mark.parametrize("wrong", [{"finalize": "yes", "to": "4.3.1"}, {"to": "same"}])
def test_a_downgrade_that_kafka_does_not_allow_is_refused(wrong):
    given = ["direction=down", *(f"{key}={value}" for key, value in wrong.items())]
    with pytest.raises(UsageError, match="direction=down"):
        _action(read_settings(EXPERIMENT, "ci", given), ("b1", "b2", "b3"))
