"""A broker joins a testbed that is up, and leaves it: made, registered, refused while it has data, gone."""

import signal
import subprocess
import sys

import pytest

from testbed.errors import TestbedError
from testbed.provision import state as states
from testbed.provision.resources import remove
from testbed.provision.status import status
from testbed.provision.testbed import Testbed
from testbed.topology.find import find
from tests.containers.conftest import ROOT, cli, left_of

pytestmark = pytest.mark.containers
NAME, KILLED = "ci-member", "ci-member-killed"
ADD = """
import sys
from testbed.provision.testbed import Testbed
testbed = Testbed.attach(sys.argv[1])
testbed.add_host("b3", step=lambda name: print(name, flush=True))
"""


def registered(testbed):
    with testbed.admin() as admin:
        return {broker.id for broker in admin.cluster().brokers}


def test_a_broker_joins_and_leaves_while_the_others_stay_as_they_are(own_state, engine):
    testbed = Testbed.up(find("two-brokers"), name=NAME)
    try:
        addresses, steps = list(testbed.bootstrap), []
        host = testbed.add_host("b3", step=steps.append)
        assert steps == ["provisioned", "started", "registered"]
        assert host.node_id in registered(testbed)
        assert list(testbed.bootstrap[:2]) == addresses
        assert testbed.shaping_differences() == []
        assert status(testbed, ())["ok"]
        with testbed.admin() as admin:
            admin.create_topic("kept", {0: [host.node_id]})
        with pytest.raises(TestbedError, match="b3 has 1 replicas, kept-0: move them"):
            testbed.remove_host("b3")
        with testbed.admin() as admin:
            admin.delete_topic("kept")
        # Another process finds the host by the state alone.
        again = Testbed.attach(NAME)
        again.remove_host("b3", step=steps.append)
        again.close()
        assert steps[3:] == ["stopped", "unregistered", "removed"]
        assert host.node_id not in registered(again)
        assert {found.host for found in engine.containers(NAME)} == {"", "b1", "b2"}
        assert status(again, ())["ok"]
        assert states.load(NAME).changing == {}
    finally:
        testbed.close()
        remove(engine, NAME)
    assert left_of(NAME) == []


@pytest.mark.nightly
@pytest.mark.parametrize("after", ["provisioned", "started"])
def test_down_removes_what_a_killed_add_left(own_state, engine, after):
    Testbed.up(find("two-brokers"), name=KILLED).close()
    try:
        adding = subprocess.Popen([sys.executable, "-c", ADD, KILLED], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert any(line.strip() == after for line in adding.stdout)
        adding.send_signal(signal.SIGKILL)
        adding.wait()
        assert states.load(KILLED).changing.keys() == {"b3"}
        assert cli("down", KILLED).returncode == 0
    finally:
        remove(engine, KILLED)
    assert left_of(KILLED) == []
