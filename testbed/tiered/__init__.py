"""Tiered storage (KIP-405): topics whose old segments are in the object store, and the metadata of these segments."""
