"""Racks as bridges, NICs as veth pairs: rendered by pure functions, applied, read back, compared."""
