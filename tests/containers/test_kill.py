"""kill -9 at points spread at random over `up`, `down` and `run`: whatever it was doing, `gc` finds what is left.

Where other tests make testbeds meanwhile, only what carries this state folder counts as left; else all on the machine.
"""

import os
import random

import pytest

from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.topology.find import load
from testbed.wait import WaitTimeout, wait_for
from tests.containers.conftest import cli
from tests.containers.kills import SHORT_RUN, TOPOLOGY, everything, kill, on_hosts

pytestmark = pytest.mark.containers
OWN = "PYTEST_XDIST_WORKER" in os.environ
SEED = int(os.environ.get("TESTBED_KILL_SEED", "38"))
KILLS, NIGHTLY_KILLS = 5, int(os.environ.get("TESTBED_KILLS", "100"))
SPAN_S = {"up": 5.0, "down": 1.2, "run": 50.0, "run --on": 30.0}
"""How long each takes on two cores; where it is quicker, it is killed in half the time then."""
SHARE = {"up": 0.4, "down": 0.2, "run": 0.2, "run --on": 0.2}
LEFT_S = 20.0


def points(command):
    """When to kill a command, in seconds from its start: 5 kills in all, and 100 others each night."""
    nightly = [pytest.param(point, marks=pytest.mark.nightly) for point in spread(command, NIGHTLY_KILLS)]
    return spread(command, KILLS) + nightly


def spread(command, kills):
    """A command's share of the kills: one point in each part of its time."""
    chosen, many = random.Random(f"{SEED} {command} {kills}"), round(kills * SHARE[command])
    return [round((n + chosen.random()) * SPAN_S[command] / many, 3) for n in range(many)]


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    path = tmp_path_factory.mktemp("kills") / "killed.yaml"
    path.write_text(TOPOLOGY)
    return path


@pytest.fixture
def before():
    return everything(own=OWN)


def show(killed):
    print(f"{killed.command} killed after {killed.at_s} s at `{killed.stage}`: {killed.found}; {killed.clean_s} s")


@pytest.mark.parametrize("at_s", points("up"))
def test_up_killed_at_any_point(at_s, topology, before):
    killed = kill(("up", str(topology), "--name", "ci-kill"), at_s, before=before, stays="ci-kill", own=OWN)
    show(killed)
    assert killed.left == ()


@pytest.mark.parametrize("at_s", points("down"))
def test_down_killed_at_any_point(at_s, topology, before):
    told = cli("up", str(topology), "--name", "ci-kill")
    assert told.returncode == 0, told.stderr
    killed = kill(("down", "ci-kill"), at_s, before=before, stays="ci-kill", own=OWN)
    show(killed)
    assert killed.left == ()


@pytest.mark.parametrize("at_s", points("run"))
def test_run_killed_at_any_point(at_s, topology, before):
    killed = kill((*SHORT_RUN, "--topology", str(topology)), at_s, before=before, own=OWN)
    show(killed)
    assert killed.left == ()


@pytest.fixture(scope="module")
def stays(topology, engine):
    testbed = Testbed.up(load(topology), name="ci-kill-on")
    yield testbed
    testbed.close()
    remove(engine, "ci-kill-on")


@pytest.mark.parametrize("at_s", points("run --on"))
def test_run_on_a_testbed_that_stays_killed_at_any_point(at_s, stays, before):
    hosts = on_hosts(stays)
    killed = kill((*SHORT_RUN, "--on", stays.name), at_s, before=before, own=OWN)
    show(killed)
    assert killed.left == ()
    # What the run had started on the hosts ends with its connections; what was moving goes on to its end.
    try:
        wait_for(lambda: on_hosts(stays) - hosts, lambda left: not left, LEFT_S, 0.2, "nothing to be left on the hosts")
    except WaitTimeout as error:
        pytest.fail(str(error))
    shown = cli("status", stays.name)
    assert shown.returncode == 0, shown.stdout + shown.stderr
