"""Six short moves, for a history: a test for each; its cases are those of the suite `brief`."""

from ducktests.scenario import ScenarioTest, scenario

SUITE = "brief"


class BriefTest(ScenarioTest):
    """Every scenario runs its experiment and asserts the verdict."""

    suite = SUITE

    @scenario(SUITE, "kip73-two-node", "kip73-two-node-produce")
    def test_move(self, case: str) -> None:
        """All partitions move under a throttle: at once, in batches, added, while clients write."""
        self.check(case)

    @scenario(SUITE, "kip73-bootstrap")
    def test_bootstrap(self, case: str) -> None:
        """An empty broker joins and is filled."""
        self.check(case)

    @scenario(SUITE, "s3-reassign")
    def test_unthrottled(self, case: str) -> None:
        """All partitions move as fast as the NIC lets them."""
        self.check(case)
