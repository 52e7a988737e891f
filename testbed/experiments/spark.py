"""The Spark session that judges runs after the measurements: each failure of Spark or the store is a `TestbedError`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from results.contract.store import StoreError
from testbed.errors import TestbedError
from testbed.extras import missing_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_SHOWN = 1000
"""The greatest number of an error's characters that are shown."""


@contextmanager
def spark_session() -> "Iterator[SparkSession]":
    """Yield a session for the block. Raise `TestbedError` when Spark is missing or fails, or the store fails."""
    try:
        # The help of a command that measures needs no Spark.
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
        from pyspark.errors import PySparkException

        from results.spark import session
    except ModuleNotFoundError as error:
        raise TestbedError(f"Spark could not judge the runs: {missing_extra(error) or error}") from error
    try:
        with session.session() as spark:
            yield spark
    except (session.SparkMissing, PySparkException, Py4JError, StoreError, OSError) as error:
        raise TestbedError(f"Spark could not judge the runs: {str(error)[:MOST_SHOWN]}") from error
