import subprocess

import pytest

from testbed.errors import TestbedError
from testbed.runner import testbed_pool as module
from testbed.runner.canary import classify, environment_key
from testbed.runner.testbed_pool import TestbedPool, to_remove, wipe
from testbed.runner.variant import Variant, parse_variant, resolve
from tests.runner.fakes import quiet

MACHINE = {"cpu_model": "x", "cores": 2, "memory_bytes": 1, "kernel": "6.1"}
BASE = Variant("kip73-two-node", "kip73-two-node")


def test_a_testbed_that_stands_is_used_again():
    assert to_remove(("a", "b"), "a", most=1) == ()


def test_another_is_made_beside_and_the_longest_unused_goes_when_there_are_too_many():
    assert to_remove((), "a") == ()
    assert to_remove(("a", "b"), "c", most=3) == ()
    assert to_remove(("a", "b", "c"), "d", most=3) == ("a",)
    assert to_remove(("a", "b", "c"), "d", most=1) == ("a", "b", "c")


def test_what_formatting_put_there_is_all_that_is_left(tmp_path):
    data = tmp_path / "kafka"
    (data / "topic-0").mkdir(parents=True)
    for name in ("meta.properties", "bootstrap.checkpoint", "topic-0/0.log", ".lock"):
        (data / name).write_text("x")
    subprocess.run(wipe(str(data)), check=True)
    assert sorted(path.name for path in data.iterdir()) == ["bootstrap.checkpoint", "meta.properties"]


@pytest.mark.parametrize("folder", ["", "/", "/var", "kafka"])
def test_what_is_no_data_directory_is_never_emptied(folder):
    with pytest.raises(ValueError, match="not a data directory"):
        wipe(folder)


def test_the_class_of_an_environment_is_of_all_its_parts_and_of_nothing_that_jitters():
    one = classify(MACHINE, "28.0", "overlay2", "sha256:1", 0.997)
    assert one == classify(MACHINE, "28.0", "overlay2", "sha256:1", 1.004)
    others = [
        classify({**MACHINE, "kernel": "6.2"}, "28.0", "overlay2", "sha256:1", 1.0),
        classify(MACHINE, "28.1", "overlay2", "sha256:1", 1.0),
        classify(MACHINE, "28.0", "vfs", "sha256:1", 1.0),
        classify(MACHINE, "28.0", "overlay2", "sha256:2", 1.0),
        classify(MACHINE, "28.0", "overlay2", "sha256:1", 0.7),
    ]
    assert len({environment_key(each) for each in (one, *others)}) == 6


class FakeTestbed:
    """Only what pool ask for; says what was done to it, in order."""

    def __init__(self, wanted, name, log):
        self.topology, self.name, self.log = wanted.topology, name, log
        self.hosts = {host.name: self for host in wanted.topology.hosts}
        self.state = type(
            "State", (), {"overlay": dict(wanted.overlay), "defects": wanted.defects, "kafka": {"b1": "4.3.1"}}
        )()
        self.running, self.stuck, self.shaping = True, False, []

    def node(self, host):
        return self

    def kill(self):
        if self.stuck:
            raise TestbedError("Kafka does not stop")
        self.running = False

    def run(self, words, timeout_s=60):
        assert not self.running
        self.log.append(f"empty {self.name}")

    def shaping_differences(self):
        return self.shaping

    def reconfigure(self, overlay, defects, progress):
        self.state.overlay, self.state.defects, self.running = dict(overlay), defects, True

    def start_kafka(self, progress):
        self.running = True

    def down(self):
        self.log.append(f"down {self.name}")


@pytest.fixture
def made(monkeypatch):
    """Every testbed that was made, by name; nothing real is."""
    log, found = [], {}

    def up(topology, name, overlay, defects, ephemeral, builds, progress):
        assert ephemeral
        log.append(builds)
        wanted = type("W", (), {"topology": topology, "overlay": overlay, "defects": defects})
        found[name] = FakeTestbed(wanted, name, log)
        log.append(f"up {name}")
        return found[name]

    monkeypatch.setattr(module.Testbed, "up", up)
    return found


ONE = resolve(parse_variant("one: fetch=default", BASE))
TUNED = resolve(parse_variant("tuned: fetch=tuned", BASE))
BROKEN = resolve(parse_variant("broken: fetch=tuned defect=late-isr@b1:seconds=3", BASE))
OTHER = resolve(parse_variant("other: kafka=4.2.1", BASE))


def test_one_testbed_serves_all_variants_of_its_kind_and_never_do_two_kafkas_run(made):
    pool = TestbedPool("0a1b2c", quiet)
    for wanted in (ONE, TUNED, BROKEN, OTHER, TUNED, BROKEN, ONE):
        pool.ready(wanted)
        assert not any(testbed.running for testbed in made.values())
        testbed = pool.start(wanted)
        assert testbed.state.overlay == dict(wanted.overlay)
        assert testbed.state.defects == wanted.defects
        assert [each.name for each in made.values() if each.running] == [testbed.name]
    assert len(made) == 2
    pool.close()
    assert {f"down {name}" for name in made} <= set(made[testbed.name].log)


@pytest.mark.parametrize("harm", ["stuck", "shaping", "kafka"])
def test_a_testbed_that_a_run_left_otherwise_is_made_anew(made, harm):
    pool = TestbedPool("0a1b2c", quiet)
    pool.ready(ONE)
    first = pool.start(ONE)
    if harm == "stuck":
        first.stuck = True
        with pytest.raises(TestbedError):
            pool.ready(ONE)
    elif harm == "shaping":
        first.shaping = ["b1 data0 transmit: not shaped"]
    else:
        first.state.kafka = {"b1": "4.2.1"}
    pool.ready(ONE)
    assert pool.start(ONE) is not first
    assert f"down {first.name}" in first.log


def test_each_testbed_has_the_builds_of_the_campaigns_beginning(made):
    """A testbed is made again after a failed run, and by `--resume`: a path may have another build by then."""
    builds = {"/src/tiered-storage": "d1"}
    pool = TestbedPool("0a1b2c", quiet, builds)
    pool.ready(ONE)
    pool.drop(ONE.topology_digest)
    pool.ready(ONE)
    (testbed,) = made.values()
    assert [each for each in testbed.log if isinstance(each, dict)] == [builds, builds]


def test_another_testbed_that_cannot_be_stopped_is_removed_and_does_not_hinder(made):
    pool = TestbedPool("0a1b2c", quiet)
    pool.ready(OTHER)
    pool.start(OTHER).stuck = True
    pool.ready(ONE)
    assert len([name for name in made if f"down {name}" in made[name].log]) == 1
