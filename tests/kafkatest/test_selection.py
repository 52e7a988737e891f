"""The tests that ducktape collects from a checkout, what they need, and what keeps them from running."""

import json
import sys
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.kafkatest.checkout import read_checkout
from testbed.kafkatest.environment import TestEnvironment
from testbed.kafkatest.selection import collected, ducktape_options, hosts_needed, obstacle
from tests.kafkatest.made_up import make_checkout, system_test

HERE = TestEnvironment(Path(sys.executable), "Python", ())
"""This project's own environment, which has a ducktape, too."""


def test_ducktape_itself_collects_from_the_checkout(tmp_path):
    checkout = read_checkout(make_checkout(tmp_path / "kafka"))
    tests = collected(checkout, HERE, [str(checkout.folder / "tests/kafkatest/tests")])
    assert {(test.name, test.nodes) for test in tests} == {
        ("alone_test.AloneTest.test_alone", 1),
        ("moving_test.MovingTest.test_move", 3),
    }
    moving = [test for test in tests if test.cls == "MovingTest"]
    assert len(moving) == 4
    assert {test.releases for test in moving} == {("3.9.1",), ()}
    assert not list(checkout.folder.rglob("__pycache__"))
    again = collected(checkout, HERE, [moving[0].symbol])
    assert [test.id for test in again] == [moving[0].id]


def test_where_no_test_matches_ducktape_says_so(tmp_path):
    checkout = read_checkout(make_checkout(tmp_path / "kafka"))
    file = checkout.folder / "tests/kafkatest/tests/core/moving_test.py"
    with pytest.raises(UsageError, match=r"no test matches: .*[Nn]o test"):
        collected(checkout, HERE, [f"{file}::MovingTest.test_other"])
    file.write_text("import a_module_that_no_environment_has\n")
    with pytest.raises(UsageError, match="no test matches|could not collect"):
        collected(checkout, HERE, [str(file)])


def test_a_test_that_needs_more_hosts_than_there_will_be_is_named():
    tests = [system_test(nodes=3), system_test(nodes=10, name="test_throttled")]
    assert hosts_needed(tests, None) == 10
    assert hosts_needed(tests, 12) == 12
    with pytest.raises(
        UsageError, match="--host-count 5 is too few: .*test_throttled needs 10; --host-count 10 is enough"
    ):
        hosts_needed(tests, 5)


OLD, NEW = ("kafka_2.13-3.9.1.jar", "zookeeper-3.8.4.jar"), ("kafka_2.13-4.0.0.jar",)
NETEM = "the kernel has no netem"


@pytest.mark.parametrize(
    ("arguments", "source", "jars", "why"),
    [
        ({"metadata_quorum": "ISOLATED_KRAFT"}, "", NEW, ""),
        ({"metadata_quorum": "ZK"}, "", OLD, ""),
        ({"metadata_quorum": "ZK"}, "", NEW, "it needs ZooKeeper"),
        ({}, "        self.zk = ZookeeperService(context, 1)\n", NEW, "it needs ZooKeeper"),
        ({}, "        self.zk = ZookeeperService(context, 1)\n", OLD, ""),
        ({}, "  self.zk = ZookeeperService(c, 1) if quorum.for_test(c) == quorum.zk else None\n", NEW, ""),
        ({"latency_ms": 50}, "DegradedNetworkFaultSpec(0, 1)", OLD, f"it delays packets, and {NETEM}"),
        ({"latency_ms": 0}, "DegradedNetworkFaultSpec(0, 1)", OLD, ""),
        ({}, "DegradedNetworkFaultSpec(0, 1)", OLD, f"it delays packets, and {NETEM}"),
        ({}, "self.kibosh = KiboshService(c)", OLD, "it needs Kibosh"),
        ({"security_protocol": "SASL_SSL", "sasl": "GSSAPI"}, "", OLD, "it needs Kafka's MiniKdc"),
        ({"from_version": "0.8.2.2"}, "", OLD, "no jars of 0.8.2.2"),
    ],
)
def test_what_keeps_a_test_from_running_is_known_before(arguments, source, jars, why):
    found = obstacle(system_test(**arguments), source, jars, lambda: NETEM, {"0.8.2.2": "no jars of 0.8.2.2"})
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_with_netem_a_delay_is_no_obstacle():
    assert obstacle(system_test(latency_ms=50), "DegradedNetworkFaultSpec(0, 1)", OLD, lambda: "", {}) == ""


def test_options_are_ducktapes_own():
    found = ducktape_options(parameters='{"a": true}', globals_="{}", repeat=2)
    assert " ".join(found) == '--max-parallel 1 --parameters {"a": true} --globals {} --repeat 2'
    for wrong in ({"parameters": "[1]"}, {"globals_": "{"}, {"repeat": 0}, {"max_parallel": 0}):
        with pytest.raises(UsageError):
            ducktape_options(**wrong)


def test_a_symbol_has_the_arguments_as_json():
    symbol = system_test(bounce=True).symbol
    assert json.loads(symbol.partition("@")[2]) == {"bounce": True}
