"""KIP-73's test plan: a test for every scenario; its cases are those of the suite `kip73` in the chosen profile."""

from ducktests.scenario import ScenarioTest, scenario

SUITE = "kip73"


class Kip73Test(ScenarioTest):
    """Every scenario runs its experiment and asserts the verdict."""

    suite = SUITE

    @scenario(SUITE, "kip73-two-node")
    def test_two_node(self, case: str) -> None:
        """All partitions move from one node to the other; nobody produces."""
        self.check(case)

    @scenario(SUITE, "kip73-two-node-produce")
    def test_two_node_produce(self, case: str) -> None:
        """All partitions move from one node to the other while clients produce to them."""
        self.check(case)

    @scenario(SUITE, "kip73-one-to-two", "kip73-one-to-two-produce")
    def test_one_to_two(self, case: str) -> None:
        """Data moves from one node to two, r = 2: the sender's quota binds."""
        self.check(case)

    @scenario(SUITE, "kip73-two-to-one", "kip73-two-to-one-produce")
    def test_two_to_one(self, case: str) -> None:
        """Data moves from two nodes to one, r = 2: the receiver's quota binds, not the senders'."""
        self.check(case)

    @scenario(SUITE, "kip73-live-change")
    def test_live_change(self, case: str) -> None:
        """The throttle is raised and lowered during the move, without a restart."""
        self.check(case)

    @scenario(SUITE, "kip73-mixed-volume")
    def test_mixed_volume(self, case: str) -> None:
        """High- and low-volume partitions together: replicas in sync keep their ISR (KAFKA-4313)."""
        self.check(case)

    @scenario(SUITE, "kip73-stuck")
    def test_stuck(self, case: str) -> None:
        """A throttle under the inbound rate is noticed as stuck, and raised."""
        self.check(case)

    @scenario(SUITE, "kip73-bounce")
    def test_bounce(self, case: str) -> None:
        """Brokers are restarted one after the other during the move: the throttle holds, nothing is lost."""
        self.check(case)

    @scenario(SUITE, "kip73-bootstrap")
    def test_bootstrap(self, case: str) -> None:
        """An empty broker joins and is filled under a wildcard throttle."""
        self.check(case)

    @scenario(SUITE, "kip73-nic-bound")
    def test_nic_bound(self, case: str) -> None:
        """A quota above the NIC's rate: the NIC is seen to bind."""
        self.check(case)

    @scenario(SUITE, "kip73-fetch-size")
    def test_fetch_size(self, case: str) -> None:
        """A fetch response larger than quota × window: the first window's burst."""
        self.check(case)
