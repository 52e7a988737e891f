import json
import re

import pytest

from results.contract.store import Store
from results.contract.verdict import DIRECTIONS
from testbed.errors import TestbedError
from testbed.experiments.reports import default_store
from testbed.kafka.node import FETCH_TUNED
from testbed.kafka.types import ConfigResource
from testbed.paths import data_dir
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE
from testbed.topology.find import find
from testbed.wait import wait_for, wait_until
from tests.containers.conftest import cli, left_of, measured, start

pytestmark = [pytest.mark.containers, pytest.mark.spark]
SMOKE = ("run", "kip73-two-node", "--profile", "smoke", "--json")
QUOTA = 5_000_000


# The shortest move in which the throttle is judged; see `BRIEF` of `testbed.experiments.throttled_move`.
BRIEF = (*SMOKE, "--set", "preload=30s", "--set", "partitions=20")
# Enough of a move to fail; only a pass needs three windows of steady state.
SHORT = (*SMOKE, "--set", "preload=26s")
# Enough of a move to be killed in it.
KILLED = (*SMOKE, "--set", "preload=12s", "--set", "partitions=20")


def verdicts(document, name):
    return {criterion["verdict"] for criterion in document["criteria"] if criterion["name"] == name}


def running_testbed(process) -> Testbed:
    """The testbed that a run has made for itself, once it is up."""

    def found():
        assert process.poll() is None, process.communicate()
        for name in states.names():
            if name.startswith("run-"):
                try:
                    return Testbed.attach(name)
                except TestbedError:
                    return None
        return None

    return wait_for(found, lambda testbed: testbed is not None, 60, 0.2, "the run's testbed")


def wait_for_quota(admin, process):
    """Until the throttle is in force, and seen to be: what is changed before the move is asked for is waited out."""

    def in_force():
        assert process.poll() is None, process.communicate()
        rates = [admin.broker_configs(broker).in_force(LEADER_RATE) for broker in (1, 2)]
        return rates == [str(QUOTA)] * 2 and admin.reassignments() != {}

    wait_until(in_force, 120, 0.1, "the run's throttle, and its move")


def finish(process):
    out, told = process.communicate(timeout=300)
    print(told)
    return process.returncode, json.loads(out)


@pytest.mark.alone
def test_the_demo_passes_and_leaves_a_run_a_report_and_nothing_else():
    told = cli(*BRIEF)
    print(told.stderr)
    document = json.loads(told.stdout)
    bad = [criterion for criterion in document["criteria"] if criterion["verdict"] != "pass"]
    assert [c for c in bad if c["verdict"] == "fail"] == []
    store = Store.open(default_store())
    assert document["run_id"] in store.runs()
    store.verify(document["run_id"])
    assert (data_dir() / "reports" / f"{document['run_id']}.html").stat().st_size > 10_000
    assert left_of(f"run-{document['run_id'][-6:]}") == []
    assert cli("reassign", "recover").stdout == "nothing to recover\n"
    measured(document["criteria"])
    assert (told.returncode, document["verdict"], bad) == (0, "pass", [])
    shown = cli("results", "show").stdout
    assert re.search(r"^PASS +throttled-window b2 receive", shown, re.M)


@pytest.mark.alone
@pytest.mark.nightly
def test_a_quota_doubled_by_somebody_else_fails():
    process = start(*SHORT)
    testbed = running_testbed(process)
    with testbed.admin() as admin:
        wait_for_quota(admin, process)
        for broker in (1, 2):
            admin.alter_configs(
                ConfigResource.broker(broker), {LEADER_RATE: str(2 * QUOTA), FOLLOWER_RATE: str(2 * QUOTA)}
            )
    status, document = finish(process)
    assert (status, document["verdict"]) == (1, "fail")
    assert verdicts(document, "quota-in-force") == {"fail"}
    measured(document["criteria"])
    assert verdicts(document, "throttled-window") == {"fail"}
    # Before Kafka was blamed, its NICs were measured once more.
    again = Store.open(default_store()).manifest(document["run_id"]).network.nics_after
    assert {(nic.host, nic.direction) for nic in again} == {(h, d) for h in ("b1", "b2") for d in DIRECTIONS}
    assert all(nic.readings[-1] == nic.ratio for nic in again)


# That a changed quota is noticed on a real broker the test above says as well; which broker's, the pure tests do.
@pytest.mark.alone
@pytest.mark.nightly
def test_a_quota_taken_from_one_broker_fails_and_the_other_broker_is_not_named_for_it():
    """The leader's quota alone let 2.9 % more through in one run and nothing more in others: rates may fail as well."""
    process = start(*SHORT)
    testbed = running_testbed(process)
    with testbed.admin() as admin:
        wait_for_quota(admin, process)
        admin.alter_configs(ConfigResource.broker(2), {}, [FOLLOWER_RATE])
    status, document = finish(process)
    assert (status, document["verdict"]) == (1, "fail")
    failed = [c["host"] for c in document["criteria"] if (c["name"], c["verdict"]) == ("quota-in-force", "fail")]
    assert failed == ["b2"]


@pytest.mark.alone
@pytest.mark.nightly
def test_a_throttle_removed_halfway_fails():
    process = start(*SMOKE)
    testbed = running_testbed(process)
    with testbed.admin() as admin:
        wait_for_quota(admin, process)
        # The partitions' target is the second broker: what it holds grows as they move.
        wait_until(lambda: moved_share(admin) >= 0.5, 120, 0.2, "half of the bytes to have moved")
        for broker in (1, 2):
            admin.alter_configs(ConfigResource.broker(broker), {}, [LEADER_RATE, FOLLOWER_RATE])
    status, document = finish(process)
    assert (status, document["verdict"]) == (1, "fail")
    assert verdicts(document, "quota-in-force") == {"fail"}
    assert verdicts(document, "throttled-window") == {"fail"}


def moved_share(admin):
    """Of the bytes that broker 1 has of the throttled topic, how much broker 2 has."""
    there = admin.log_dirs([1, 2], [topic for topic in admin.topics() if topic.startswith("kip73")])
    has = [sum(log.size_bytes for log in there[broker].values()) for broker in (1, 2)]
    return has[1] / has[0] if has[0] else 0.0


def test_a_run_killed_on_a_testbed_that_stays_leaves_a_journal_that_recover_puts_back():
    engine = Engine()
    # With the experiment's properties already: Kafka is not restarted for the run.
    testbed = Testbed.up(find("two-brokers"), name="ci-stays", overlay=FETCH_TUNED)
    try:
        process = start(*KILLED, "--on", "ci-stays")
        with testbed.admin() as admin:
            wait_for(
                lambda: admin.broker_configs(1).in_force(LEADER_RATE),
                lambda rate: rate == str(QUOTA),
                120,
                0.2,
                "the run's throttle",
            )
            process.kill()
            process.communicate()
            runs = Store.open(default_store()).runs()
            told = cli("reassign", "recover")
            assert told.returncode == 0, told.stdout
            assert told.stdout.startswith("restored: ")
            assert [admin.broker_configs(broker).in_force(FOLLOWER_RATE) for broker in (1, 2)] == [None, None]
        listed = cli("results", "list").stdout.splitlines()[1:]
        assert [line.split()[0] for line in listed] == runs  # no half a run among them
        assert cli("gc").stdout == "nothing to collect\n"
    finally:
        testbed.close()
        remove(engine, "ci-stays")
        engine.close()
    assert left_of("ci-stays") == []
