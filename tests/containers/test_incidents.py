"""One incident, small, replayed in both variants on a testbed that stays; each night all ready ones in both."""

import json

import pytest

from results.contract.store import Store
from results.criteria.judgement import machine_criteria
from testbed.cli.verdicts import EXIT
from testbed.experiments.reports import default_store
from testbed.incidents.read import ready_incidents
from testbed.kafka.node import FETCH_TUNED
from testbed.paths import data_dir
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE
from testbed.topology.find import find
from tests.containers.conftest import cli, left_of, measured

pytestmark = [pytest.mark.containers, pytest.mark.alone]
SMALLER = [
    word
    for value in ("size=60MB", "throttle=3MB/s", "limit=3600kB/s", "late=3s")  # at most 3 x 12 + 1 MB in 11 s
    for word in ("--set", value)
]


def replayed(name, variant, *words):
    """Replay once, and once more where other work was in the way and nothing was judged."""
    for _time in range(2):
        told = cli("replay", name, "--variant", variant, *words, "--json")
        print(told.stderr)
        document = json.loads(told.stdout)
        assert told.returncode == EXIT[document["verdict"]]
        if not disturbed(document):
            return document
    measured(document["criteria"], f"the {variant} replay of {name}")
    return document


def disturbed(document):
    return any(name in (document["deviation"] or "") for name in machine_criteria())


def test_an_incident_gives_the_expected_verdicts_in_both_variants_and_leaves_nothing(engine):
    # With the incident's properties already: Kafka is not restarted for the replay.
    testbed = Testbed.up(find("two-brokers"), name="ci-incident", overlay=FETCH_TUNED)
    try:
        for variant, verdict in (("broken", "fail"), ("fixed", "pass")):
            document = replayed("move-before-quota", variant, *SMALLER, "--on", "ci-incident")
            assert (document["verdict"], document["deviation"]) == (verdict, None), document["criteria"]
            Store.open(default_store()).verify(document["run_id"])
            assert (data_dir() / "reports" / f"{document['run_id']}.html").stat().st_size > 10_000
        with testbed.admin() as admin:
            rates = [admin.broker_configs(b).in_force(key) for b in (1, 2) for key in (LEADER_RATE, FOLLOWER_RATE)]
            assert rates == [None] * 4
            assert admin.reassignments() == {}
        assert cli("reassign", "recover").stdout == "nothing to recover\n"
    finally:
        testbed.close()
        remove(engine, "ci-incident")
    assert left_of("ci-incident") == []


@pytest.mark.nightly
@pytest.mark.parametrize("variant", ["broken", "fixed"])
@pytest.mark.parametrize("name", ready_incidents())
def test_every_ready_incident_does_what_its_file_expects(name, variant):
    """CI plays one of them at every change, and the suite `incidents` plays the fixed variants alone."""
    document = replayed(name, variant)
    assert document["deviation"] is None, document["criteria"]
