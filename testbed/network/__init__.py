"""Bridges for racks and veth pairs for NICs. Pure functions render the commands; the kernel's state is compared."""
