"""KIP-455 step by step: the ducktape tests of the suite `kip455`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class Kip455Test(ScenarioTest):
    """A test for each experiment of the suite; each case runs its experiment and asserts the verdict."""

    suite = "kip455"
