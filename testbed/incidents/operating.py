"""What a timeline's actions ask of whoever operates the cluster."""

from typing import Protocol


class Operator(Protocol):
    """The hands on a cluster; `testbed.incidents.operator.ClusterOperator` are real ones. All raise `TestbedError`."""

    def move(self, topics: tuple[str, ...], hosts: tuple[str, ...], rate_bytes_per_s: int | None) -> None:
        """Ask for a reassignment; with a rate, the throttle is in force everywhere before."""

    def set_throttle(self, rate_bytes_per_s: int, topics: tuple[str, ...]) -> None:
        """Set rates and lists for these topics (none: all of the incident's); wait until all live brokers show them."""

    def raise_throttle(self, rate_bytes_per_s: int) -> None:
        """Set another rate on every live broker."""

    def remove_throttle(self) -> None:
        """Take rates and lists away."""

    def restart(self, host: str) -> None:
        """Stop Kafka if it runs, start it, wait until it is unfenced."""

    def elect_preferred(self, topics: tuple[str, ...]) -> None:
        """Elect preferred leaders of these topics (none: all of the incident's)."""

    def cancel(self) -> None:
        """Cancel what has not arrived."""

    def inject(self, fault: str) -> None:
        """Put a fault in."""

    def heal(self, kind: str | None) -> None:
        """Heal all faults, or those of one kind."""
