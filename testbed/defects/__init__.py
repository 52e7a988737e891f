"""Defects: brokers that are broken on purpose, to show what the testbed finds. A Java agent rewrites Kafka's methods.

A defect is loaded only when the user asks for it. The testbed's state, every run's manifest and every report name it.
"""

from testbed.defects.parse import by_host, defects, parse_defect

__all__ = ["by_host", "defects", "parse_defect"]
