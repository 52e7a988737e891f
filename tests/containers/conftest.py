"""Real testbeds. These tests need root and an engine; they fail, and are not skipped, where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from results.criteria.judgement import machine_criteria
from testbed.network.flow import FlowSettings, payload_rate
from testbed.network.measure import host_place, settled
from testbed.network.transfers import MEASURE_S
from testbed.provision.containers import Engine
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.software.automq import VARIABLE as AUTOMQ
from testbed.topology.find import find

ROOT = Path(__file__).parents[2]
THREE = f"ci-three-{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')}"
"""The name of the testbed `three`: each worker of pytest-xdist has its own."""
needs_automq = pytest.mark.skipif(not os.environ.get(AUTOMQ), reason="not run: no distribution supplied")
"""What is played on a real AutoMQ is skipped where the user has named none."""
GIVEN_MANAGER = "TESTBED_TIERED_MANAGER"
"""A folder with the jars of another RemoteStorageManager, such as Aiven's."""
needs_manager = pytest.mark.skipif(not os.environ.get(GIVEN_MANAGER), reason="not run: no manager supplied")
LAST_TRY = "TESTBED_LAST_TRY"
"""Set where nobody runs again what fails: a test that the machine did not let measure is told as inconclusive then."""


@pytest.fixture(scope="session")
def engine():
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory):
    """A state folder and a store of these tests' own; the cache is the machine's."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    yield
    patch.undo()


@pytest.fixture(scope="session")
def three(own_state, engine):
    """Three brokers, up for all tests that only look."""
    testbed = Testbed.up(find("three-brokers"), name=THREE)
    yield testbed
    testbed.close()
    remove(engine, THREE)


def carried(testbed, source, target):
    """Return the payload bytes per second from one host to another on their first NICs, over 2 s."""
    ends = [host_place(testbed.topology.host(name), 0, testbed.plan, testbed.hosts) for name in (source, target)]
    return payload_rate(*ends, FlowSettings(MEASURE_S))


def cli(*words, timeout_s=300):
    """Run `testbed …` as a user would; returns the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "testbed.cli.main", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def start(*words):
    """Start `testbed …` as a user would; returns the running process."""
    command = [sys.executable, "-m", "testbed.cli.main", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def left_of(name):
    """Everything the machine still has of a testbed, in words."""
    engine = Engine()
    left = [f"container {found.id[:12]}" for found in engine.containers(name)]
    left += [f"network {network[:12]}" for network, _labels in engine.networks(name)]
    links = subprocess.run(["ip", "link", "show"], capture_output=True, text=True, check=True).stdout
    left += [line for line in links.splitlines() if f"alias testbed={name}" in line]
    engine.close()
    return left


def measured(criteria, what="the run"):
    """Go on only with a run that was measured, as JSON has its criteria; what was not is no pass, nor Kafka's defect.

    Where the machine was busy, or not its own, the test fails at first, to be run again alone. When that is so once
    more it is skipped, with the reason in pytest's summary. What holds on any machine is to be asserted before.
    """
    disturbed = [c["why"] for c in criteria if c["name"] in machine_criteria() and c["verdict"] == "inconclusive"]
    if not disturbed:
        return
    if os.environ.get(LAST_TRY):
        pytest.skip(f"inconclusive, {what} could not be measured: {'; '.join(disturbed)}")
    pytest.fail(f"{what} could not be measured: {'; '.join(disturbed)}")


def links_off(testbed):
    """The NICs that read off every time they were measured, with what was read."""
    rates = settled(testbed.nics)
    assert len(rates) == 2 * sum(len(host.nics) for host in testbed.topology.hosts)
    print(f"{testbed.name}: {min(rate.ratio for rate in rates):.3f} to {max(rate.ratio for rate in rates):.3f}")
    return {(rate.place, rate.device, rate.direction): round(rate.ratio, 3) for rate in rates if not rate.as_declared}
