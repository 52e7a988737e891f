"""KIP-435's test plan: reassignments parametrised over modes; its cases are those of the suite `kip435`."""

from ducktests.scenario import ScenarioTest, scenario

SUITE = "kip435"


class Kip435Test(ScenarioTest):
    """Every scenario runs its experiment in a mode and asserts the verdict."""

    suite = SUITE

    @scenario(SUITE, "kip73-two-node", "kip73-one-to-two", "kip73-two-to-one")
    def test_throttled(self, case: str) -> None:
        """A move that nobody writes to, in each mode: the throttle's bound holds, and the steps' limits."""
        self.check(case)

    @scenario(SUITE, "kip73-two-node-produce", "kip73-one-to-two-produce", "kip73-two-to-one-produce")
    def test_under_load(self, case: str) -> None:
        """The same while clients produce: nothing is lost, no ISR shrinks."""
        self.check(case)

    @scenario(SUITE, "kip73-live-change", "kip73-stuck")
    def test_changed_while_it_runs(self, case: str) -> None:
        """The throttle is changed live; in steps it is so from the next step on."""
        self.check(case)

    @scenario(SUITE, "kip73-bounce")
    def test_bounce(self, case: str) -> None:
        """Brokers are restarted one after the other in the midst of it."""
        self.check(case)

    @scenario(SUITE, "kip73-mixed-volume", "kip73-nic-bound", "kip73-fetch-size")
    def test_other_bounds(self, case: str) -> None:
        """What binds is not the throttle alone."""
        self.check(case)

    @scenario(SUITE, "kip435-exchange")
    def test_exchange(self, case: str) -> None:
        """All replicas of every partition are exchanged under load."""
        self.check(case)

    @scenario(SUITE, "kip435-rf4")
    def test_motivation(self, case: str) -> None:
        """Four replicas moved whole: eight fetch or lead at once; in steps no more than five."""
        self.check(case)
