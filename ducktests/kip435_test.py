"""KIP-435's test plan: the ducktape tests of the suite `kip435`, in each mode of execution."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class Kip435Test(ScenarioTest):
    """The tests of the suite, one for each experiment; each case runs its experiment and asserts the verdict."""

    suite = "kip435"
