"""Tiered storage (KIP-405): topics whose old segments lie in the object store, and what is known of those."""
