"""Short moves and scenarios of placement for a history: the ducktape tests of the suite `brief`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class BriefTest(ScenarioTest):
    """The tests of the suite, one for each experiment; each case runs its experiment and asserts the verdict."""

    suite = "brief"
