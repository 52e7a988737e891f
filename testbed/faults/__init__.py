"""What goes wrong on purpose: put in, seen to have taken effect, and healed back to what the topology declares."""

from testbed.faults.fault import Fault, FaultDidNotFire
from testbed.faults.faults import Faults
from testbed.faults.journal import FaultEntry
from testbed.faults.parse import as_text, kinds, parse_fault

__all__ = ["Fault", "FaultDidNotFire", "FaultEntry", "Faults", "as_text", "kinds", "parse_fault"]
