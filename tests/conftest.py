"""Shared by all tests."""

import os
import signal
from pathlib import Path

from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# Tests run side by side, and the machine may have other work: how long one example takes is nobody's subject.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts this in the background ignores the signal, and tests are about it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

CONTAINERS = Path("tests/containers")
STORE = "store"
"""The mark of tests that need the object store's server: a machine that has none builds it in the meantime."""
KINDS = ("failed", "error", "skipped")
MOST_SHOWN = 300
AT_ONCE = 2
"""Files of tests with containers that run at the same time: a machine with two cores carries two testbeds."""


def group_of(file):
    """Return the group whose tests one worker runs in order: a file, or one of the `AT_ONCE` shares of `CONTAINERS`."""
    if Path(file).parent != CONTAINERS:
        return file
    every = sorted(path.name for path in (Path(__file__).parent / CONTAINERS.name).glob("test_*.py"))
    return f"{CONTAINERS}/{every.index(Path(file).name) % AT_ONCE}"


class Groups(LoadScopeScheduling):
    """Gives each worker whole groups, in the order of collection."""

    def _split_scope(self, nodeid):
        return group_of(nodeid.split("::", 1)[0])


def pytest_collection_modifyitems(items):
    """Put the tests with containers first, since they take longest, and of each kind those that need the store last."""

    def place(item):
        return item.path.parent.name != CONTAINERS.name, item.get_closest_marker(STORE) is not None

    items.sort(key=place)


def pytest_xdist_make_scheduler(config, log):
    """Return the scheduler of `pytest --numprocesses`."""
    return Groups(config, log)


def pytest_terminal_summary(terminalreporter):
    """Add every failed and skipped test, with its reason, to the file that TESTBED_TEST_SUMMARY names."""
    summary = os.environ.get("TESTBED_TEST_SUMMARY")
    if summary is None or hasattr(terminalreporter.config, "workerinput"):
        return
    stats = terminalreporter.stats
    lines = [f"{kind} {report.nodeid}: {reason(report)}" for kind in KINDS for report in stats.get(kind, [])]
    with Path(summary).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def reason(report):
    """Return the reason of a skipped test, or the end of a failed one's message, in one line."""
    if isinstance(report.longrepr, tuple):  # skipped: path, line, reason
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join((crash.message if crash else str(report.longrepr)).split())[:MOST_SHOWN]
