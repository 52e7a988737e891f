"""The incident library: the ducktape tests of the suite `incidents`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class IncidentsTest(ScenarioTest):
    """The tests of the suite, one for each incident; each replays the fixed variant and asserts the verdict."""

    suite = "incidents"
