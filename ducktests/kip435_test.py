"""KIP-435's test plan: the ducktape tests of the suite `kip435`, in each mode of execution."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class Kip435Test(ScenarioTest):
    """A test for each experiment of the suite; each case runs its experiment and asserts the verdict."""

    suite = "kip435"
