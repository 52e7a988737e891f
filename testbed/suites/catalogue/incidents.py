"""The incident library: the fixed variant of each ready incident."""

from testbed.incidents.library import PREFIX
from testbed.incidents.read import ready_incidents
from testbed.suites.suite import LIMIT_S, Case, Suite

SMOKE = ("sick-common-replica",)
_CASES = {name: Case(name, f"{PREFIX}{name}", (), None, LIMIT_S) for name in ready_incidents()}

SUITE = Suite(
    "incidents",
    "Does every reported incident stay away when the operators, or the release, do it right?",
    "incidents_test.py",
    {"smoke": tuple(_CASES[name] for name in SMOKE), "ci": tuple(_CASES.values()), "release": tuple(_CASES.values())},
)
