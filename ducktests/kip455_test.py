"""KIP-455 step by step: a test for every scenario; its cases are those of the suite `kip455` in the chosen profile."""

from ducktests.scenario import ScenarioTest, scenario

SUITE = "kip455"


class Kip455Test(ScenarioTest):
    """Every scenario runs its experiment and asserts the verdict."""

    suite = SUITE

    @scenario(SUITE, "kip455-example")
    def test_example(self, case: str) -> None:
        """The KIP's own example: [1, 2, 3] to [4, 3, 2]."""
        self.check(case)

    @scenario(SUITE, "kip455-cancel", "kip455-override-cancelled")
    def test_cancel(self, case: str) -> None:
        """The KIP's example of a cancellation; and a cancellation after another target was given."""
        self.check(case)

    @scenario(SUITE, "kip455-rows")
    def test_rows(self, case: str) -> None:
        """The six rows of {1, 2, 3} to {4, 5, 6}."""
        self.check(case)

    @scenario(SUITE, "kip455-override", "kip455-override-overlapping", "kip455-override-back", "kip455-override-same")
    def test_override(self, case: str) -> None:
        """Another target while a move is under way: a new one, an overlapping one, the origin, the same."""
        self.check(case)

    @scenario(SUITE, "kip455-target-dead", "kip455-leader-dies")
    def test_broker_down(self, case: str) -> None:
        """A target broker is down, then back; the leader dies while its partition moves."""
        self.check(case)

    @scenario(SUITE, "kip455-topic-deleted", "kip455-partitions-added")
    def test_topic_changed(self, case: str) -> None:
        """The topic is deleted, or given partitions, while it moves."""
        self.check(case)

    @scenario(SUITE, "kip455-replication-factor")
    def test_replication_factor(self, case: str) -> None:
        """The replication factor goes up, and down."""
        self.check(case)

    @scenario(SUITE, "kip455-preferred-leader")
    def test_preferred_leader(self, case: str) -> None:
        """The preferred leader is elected after a move."""
        self.check(case)

    @scenario(SUITE, "kip455-many")
    def test_many(self, case: str) -> None:
        """2,000 partitions at once."""
        self.check(case)

    @scenario(SUITE, "kip455-errors")
    def test_errors(self, case: str) -> None:
        """What is refused, by partition and by the protocol's names."""
        self.check(case)

    @scenario(SUITE, "kip455-override-failover")
    def test_override_failover(self, case: str) -> None:
        """Another target while no controller is active."""
        self.check(case)
