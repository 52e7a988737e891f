"""The pytest plugin: fixtures `testbed` and `kafka_cluster`, and evidence in the report of a failed test.

pytest loads this module in every project that has the testbed installed, so it imports the testbed at its first use.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from testbed.api import UserTestbed
    from testbed.testing.session_testbeds import SessionTestbeds
    from testbed.testing.shaped_kafka import ShapedKafka

INI = "testbed_topology"
DEFAULT = "three-brokers"
_USED: "pytest.StashKey[UserTestbed]" = pytest.StashKey()
"""The testbed of a test that requested one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the default topology as an option and as an ini value."""
    where = "a file, or the name of a ready topology"
    parser.getgroup("testbed").addoption(
        "--testbed-topology", metavar="TOPOLOGY", help=f"the topology of tests without a marker: {where}"
    )
    parser.addini(INI, f"the topology of tests without a marker: {where}", default=DEFAULT)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "topology(name): the topology of the testbed that the test requests")


def topology_of(node: pytest.Item) -> str:
    """Return the topology of a test: its nearest marker, the option, or the ini value."""
    marker = node.get_closest_marker("topology")
    if marker is None:
        return str(node.config.getoption("--testbed-topology") or node.config.getini(INI))
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], str):
        raise pytest.UsageError(f"{node.nodeid}: the marker topology has one string, as in topology('two-brokers')")
    return marker.args[0]


@pytest.fixture(scope="session")
def session_testbeds(request: pytest.FixtureRequest) -> "Iterator[SessionTestbeds]":
    """Yield the testbeds of this process; remove them at the session's end."""
    from testbed.testing.session_testbeds import SessionTestbeds

    workerinput: dict[str, str] = getattr(request.config, "workerinput", {})
    testbeds = SessionTestbeds(workerinput.get("workerid", "main"))
    yield testbeds
    testbeds.close()


@pytest.fixture
def testbed(request: pytest.FixtureRequest, session_testbeds: "SessionTestbeds") -> "UserTestbed":
    """Return the running testbed of the test's topology; tests of one process share it."""
    found = session_testbeds.get(topology_of(request.node))
    request.node.stash[_USED] = found
    return found


@pytest.fixture
def kafka_cluster(testbed: "UserTestbed") -> "Iterator[ShapedKafka]":
    """Yield the brokers of `testbed` with the methods of testcontainers."""
    from testbed.testing.shaped_kafka import ShapedKafka

    cluster = ShapedKafka.of(testbed)
    yield cluster
    cluster.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the evidence to the report of a failed test, before its fixtures end."""
    report = yield
    used = item.stash.get(_USED, None)
    if report.failed and used is not None:
        from testbed.testing.evidence import evidence

        report.sections.extend(evidence(used))
    return report
