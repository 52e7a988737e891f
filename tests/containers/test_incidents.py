"""One incident, small, played for real in both practices on a testbed that stays: it goes as its file foretells."""

import json

import pytest

from results.contract.store import Store
from results.criteria.judgement import MACHINE_CRITERIA
from testbed.cli.verdicts import EXIT
from testbed.experiments.reports import default_store
from testbed.paths import data_dir
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.throttle.configs import FOLLOWER_RATE, LEADER_RATE
from testbed.topology.find import find
from tests.containers.conftest import cli, left_of, measured

pytestmark = pytest.mark.containers
SMALLER = [
    word
    for value in ("size=60MB", "throttle=3MB/s", "limit=3600kB/s", "late=3s")  # at most 3 x 12 + 1 MB in 11 s
    for word in ("--vary", value)
]


def replayed(practice):
    told = cli("replay", "move-before-quota", "--practice", practice, *SMALLER, "--on", "ci-incident", "--json")
    print(told.stderr)
    document = json.loads(told.stdout)
    assert told.returncode == EXIT[document["verdict"]]
    return document


def disturbed(document):
    return any(name in (document["unlike"] or "") for name in MACHINE_CRITERIA)


def test_an_incident_goes_as_its_file_foretells_in_both_practices_and_leaves_nothing(engine):
    testbed = Testbed.up(find("two-brokers"), name="ci-incident")
    try:
        for practice, verdict in (("faulty", "fail"), ("remedy", "pass")):
            document = replayed(practice)
            if disturbed(document):  # other work was in the way, and nothing was judged
                document = replayed(practice)
            if disturbed(document):
                measured(document["criteria"], f"the {practice} replay")
            assert (document["verdict"], document["unlike"]) == (verdict, None), document["criteria"]
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
