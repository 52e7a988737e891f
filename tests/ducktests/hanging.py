"""A cluster plug-in for tests of ducktape itself: hosts there are none, and the case `stuck` hangs where it says so.

As a program: a suite's session with this plug-in, to be interrupted or killed.
"""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from ducktests import framework, services
from ducktests.cluster import TestbedCluster
from testbed.errors import TestbedError
from testbed.runner import case as cases
from testbed.runner import ducktape as sessions
from testbed.runner import time_limit as limits
from testbed.runner.ducktape import DucktapeSession
from testbed.runner.time_limit import time_limit
from testbed.suites.suite import find_suite
from testbed.topology.find import find

LIMIT_S = float(os.environ.get("TESTS_LIMIT_S", "2"))
BEGUN = "begun"


class NoTestbed:
    topology = find("two-brokers")

    def daemon(self, host):
        raise TestbedError(f"{host}: there is no such host")

    def close(self):
        pass


class HangingCluster(TestbedCluster):
    def _nodes(self, topology):
        return [
            framework.node(
                framework.Account(
                    framework.ssh_config("none", "", "", ""), node_type=topology, ssh_exception_checks=None
                ),
                node_type=topology,
                testbed="none",
                kept=True,
                options=self._options,
                problem=None,
            )
            for _host in NoTestbed.topology.hosts
        ]


def hang_here(folder):
    (folder / BEGUN).write_text(str(os.getpid()))
    while True:
        time.sleep(60)


def run(self, _testbed, _store, _progress):
    self.folder.mkdir(parents=True, exist_ok=True)
    if self.case.name == "stuck":
        hang_here(self.folder)
    outcome = cases.CaseOutcome(self.case.name, self.case.experiment, "two-brokers", "pass", None, "", 1.0)
    outcome.write(self.folder)
    return outcome


services.KafkaService.testbed = property(lambda _self: NoTestbed())
services.KafkaService.start = lambda _self, _overlay=None: None
services.KafkaService.logs = {}
cases.CaseRun.run = run
limits.time_limit = lambda _seconds, what, evidence: time_limit(LIMIT_S, what, evidence)


def session(folder: Path) -> DucktapeSession:
    suite = find_suite("kip73")
    return DucktapeSession(suite, "ci", suite.cases("ci", ["stuck"]), None, str(folder / "store"), folder / "out")


if __name__ == "__main__":
    command = DucktapeSession.command

    def with_this(self):
        return [word.replace("ducktests.cluster.TestbedCluster", "hanging.HangingCluster") for word in command(self)]

    DucktapeSession.command = with_this
    sessions._remove_left = lambda _pid, _progress: None
    # As main() has it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sessions.run(session(Path(sys.argv[1])), partial(print, flush=True))
