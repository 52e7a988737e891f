"""KIP-73's test plan: the ducktape tests of the suite `kip73`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class Kip73Test(ScenarioTest):
    """A test for each experiment of the suite; each case runs its experiment and asserts the verdict."""

    suite = "kip73"
