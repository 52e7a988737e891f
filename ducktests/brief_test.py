"""Six short moves for a history: the ducktape tests of the suite `brief`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class BriefTest(ScenarioTest):
    """A test for each experiment of the suite; each case runs its experiment and asserts the verdict."""

    suite = "brief"
