"""Testbeds in other projects' tests: a pytest plugin, and the classes of testcontainers.

pytest imports this package in every project that has the testbed installed. So it imports nothing before its use.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["ShapedHost", "ShapedKafka"]

if TYPE_CHECKING:
    from testbed.testing.shaped_kafka import ShapedHost, ShapedKafka
else:

    def __getattr__(name: str) -> Any:
        if name in __all__:
            from testbed.testing import shaped_kafka

            return getattr(shaped_kafka, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
