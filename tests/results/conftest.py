"""Shared by the tests of results: synthetic runs are made once, and one Spark session serves all."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from results.contract.store import RunData
from results.spark.session import session
from tests.results.synthetic import Options, SyntheticRun, synthetic_run

_MADE: dict[Options, SyntheticRun] = {}


@pytest.fixture(scope="session")
def make_run() -> Callable[..., SyntheticRun]:
    """A synthetic run by its options; the same options give the same object."""

    def make(**options: object) -> SyntheticRun:
        wanted = Options(**options)  # type: ignore[arg-type]
        if wanted not in _MADE:
            _MADE[wanted] = synthetic_run(wanted)
        return _MADE[wanted]

    return make


@pytest.fixture(scope="session")
def data(make_run) -> RunData:
    """A small run, to be committed."""
    return make_run(log_bytes=20e6, partitions=3).data()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session() as started:
        yield started
