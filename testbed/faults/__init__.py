"""Faults: the testbed breaks something on purpose, verifies the effect, and heals it to the declared state."""

from testbed.faults.active_faults import Faults
from testbed.faults.fault import Fault, FaultDidNotFire
from testbed.faults.journal import FaultEntry
from testbed.faults.parse import as_text, kinds, parse_fault

__all__ = ["Fault", "FaultDidNotFire", "FaultEntry", "Faults", "as_text", "kinds", "parse_fault"]
