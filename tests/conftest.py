"""Shared by all tests."""

import gc
import os
import re
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

# Tests run side by side, and the machine may have other work: how long one example takes is nobody's subject.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts this in the background ignores the signal, and tests are about it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # what is collected stays: to search it for garbage over and over finds none

CONTAINERS = Path("tests/containers")
STORE = "store"
"""The mark of tests that need the object store's server: a machine that has none builds it in the meantime."""
KINDS = ("failed", "error", "skipped")
MOST_SHOWN = 300
AT_ONCE = 2
"""Workers that run tests with containers while others run pure tests: a machine with two cores carries two testbeds."""
AT_ONCE_LATER = 3
"""Workers that run tests with containers once all pure tests have begun: the cores have time for one more."""
LONGEST = "test_s3.py"
"""It takes longest of those that need the store: begun last, it would run alone."""
ALONE, SPARK = "alone", "spark"
SHARED = {
    Path("tests/results"): (re.compile(r"mark\.spark"), "tests/results/spark"),
    CONTAINERS: (re.compile(r"[(, ]three[,)]|\"three\""), "tests/containers/three"),
}
"""Folder → what a file says that shares what costs much, and the group of all such files.

They share a Spark session, whose start takes 8 s of CPU, or three brokers that stay up. Each worker would have its own.
"""


def has_containers(group):
    """Return whether the tests of a group (a file, or several) start containers."""
    return Path(group).parent == CONTAINERS


@cache
def group_of(file):
    """Return the group of a file's tests: the file itself, or all files that share what it uses."""
    said, group = SHARED.get(Path(file).parent, (None, ""))
    shares = said is not None and said.search((Path(__file__).parents[1] / file).read_text(encoding="utf-8"))
    return group if shares else file


class Groups(LoadScopeScheduling):
    """Gives each worker whole files, in the order of collection; those with containers to some of the workers.

    Files that share what costs much are all given to one worker.
    """

    def _split_scope(self, nodeid):
        return group_of(nodeid.split("::", 1)[0])

    def _assign_work_unit(self, node):
        most = AT_ONCE if any(not has_containers(name) for name in self.workqueue) else AT_ONCE_LATER
        carriers = [each for each in self.nodes if not each.shutting_down][:most]
        group = next((name for name in self.workqueue if node in carriers or not has_containers(name)), None)
        if group is None:
            node.shutdown()  # what is left starts containers
            return
        self.workqueue.move_to_end(group, last=False)
        super()._assign_work_unit(node)


def pytest_collection_modifyitems(items):
    """Put first what takes longest: files with containers, then with Spark; of each kind last what needs the store.

    Of files with containers those of a group come first: one worker is busy with them for minutes.
    """
    alone = [item for item in items if item.get_closest_marker(ALONE)]
    if stray := [item.nodeid for item in alone if item.path.parent.name != CONTAINERS.name]:
        raise pytest.UsageError(f"`./run test` looks for tests marked {ALONE} in {CONTAINERS} only, not at {stray[0]}")
    spark = {item.path for item in items if item.get_closest_marker(SPARK)}

    def place(item):
        waits = item.get_closest_marker(STORE) is not None
        pure = item.path.parent.name != CONTAINERS.name
        file = item.nodeid.split("::", 1)[0]
        return pure, pure and item.path not in spark, waits, waits and item.path.name != LONGEST, group_of(file) == file

    items.sort(key=place)


def pytest_collection_finish():
    """Search what the tests make for garbage, and no longer the thousands of tests."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
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
