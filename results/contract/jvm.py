"""The JVM of a Kafka in words: what a topology declares of it, and the testbed's own values for the rest."""

from collections.abc import Iterable

OWN_HEAP, OWN_COLLECTOR = "256MiB to 512MiB", "serial"
"""What `testbed.software.jvm` starts a JVM with."""


def jvm_in_words(heap: str | None, collector: str | None, flags: Iterable[str]) -> str:
    """Return heap, garbage collector and flags; None of the first two is the testbed's own value."""
    return ", ".join([f"heap {heap or OWN_HEAP}", f"gc {collector or OWN_COLLECTOR}", *flags])
