"""Spark over the store: the same measures by SQL, then the same judgement."""

from results.spark.recompute import Recomputed, recompute
from results.spark.session import session

__all__ = ["Recomputed", "recompute", "session"]
