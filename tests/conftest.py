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
"""Workers that run tests with containers: a machine with two cores carries two testbeds."""
LONGEST = "test_s3.py"
"""It takes four minutes: begun last, it would run alone."""


def has_containers(group):
    """Return whether the tests of a group (a file) start containers."""
    return Path(group).parent == CONTAINERS


class Groups(LoadScopeScheduling):
    """Gives each worker whole files, in the order of collection; those with containers to `AT_ONCE` workers alone."""

    def _split_scope(self, nodeid):
        return nodeid.split("::", 1)[0]

    def _assign_work_unit(self, node):
        carriers = [each for each in self.nodes if not each.shutting_down][:AT_ONCE]
        group = next((name for name in self.workqueue if node in carriers or not has_containers(name)), None)
        if group is None:
            node.shutdown()  # what is left starts containers
            return
        self.workqueue.move_to_end(group, last=False)
        super()._assign_work_unit(node)


def pytest_collection_modifyitems(items):
    """Put the tests with containers first, since they take longest, and of each kind those that need the store last."""

    def place(item):
        waits = item.get_closest_marker(STORE) is not None
        return item.path.parent.name != CONTAINERS.name, waits, waits and item.path.name != LONGEST

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
