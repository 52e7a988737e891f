"""KIP-73's test plan: the ducktape tests of the suite `kip73`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class Kip73Test(ScenarioTest):
    """The tests of the suite, one for each experiment; each case runs its experiment and asserts the verdict."""

    suite = "kip73"
