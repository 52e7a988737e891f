"""KIP-455 step by step: the ducktape tests of the suite `kip455`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class Kip455Test(ScenarioTest):
    """The tests of the suite, one for each experiment; each case runs its experiment and asserts the verdict."""

    suite = "kip455"
