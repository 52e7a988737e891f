"""Testbed: real Kafka brokers on shaped NICs, reassignments under a throttle, judged by bytes."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Testbed", "__version__"]

if TYPE_CHECKING:
    from testbed.api import UserTestbed as Testbed
else:

    def __getattr__(name: str) -> Any:
        # Imported at first use: set-up imports this package before the package's dependencies are installed.
        if name == "Testbed":
            from testbed.api import UserTestbed as Testbed

            return Testbed
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
