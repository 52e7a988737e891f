"""Moves of data in S3: the ducktape tests of the suite `s3`."""

from ducktests.scenario import ScenarioTest, scenario_tests


@scenario_tests
class S3Test(ScenarioTest):
    """The tests of the suite, one for each experiment; each case runs its experiment and asserts the verdict."""

    suite = "s3"
