"""Spark over the store: the same measures by SQL (`session`, then `recompute`), then the same judgement."""
