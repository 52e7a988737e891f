"""`--cluster ducktests.cluster.TestbedCluster`: a testbed's hosts are the nodes, and its topology is their type.

The cluster provisions a testbed when the first test requests its topology, and keeps it for later tests. It removes the
testbed before it provisions the next topology: two testbeds at once would disturb each other's measurements. The
testbed belongs to ducktape's process; if that process is killed, `testbed gc` removes the testbed.
"""

import atexit
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ducktests import framework
from ducktests.account import TestbedAccount
from ducktests.options import Options, read_options
from ducktests.parent_death import die_with_suite
from testbed.errors import TestbedError, UsageError
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.membership import require_whole_change
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.runner.ducktape import print_progress
from testbed.software.source import parse_source
from testbed.topology.find import find, ready


class TestbedCluster(framework.Cluster):
    """A cluster of one testbed at a time. See the module."""

    __test__ = False

    def __init__(self, cluster_file: str | None = None) -> None:
        super().__init__()
        die_with_suite()
        framework.listen_on_loopback_only()
        self._options: Options = read_options(cluster_file)
        if self._options.kafka:
            parse_source(self._options.kafka)
        self._types = [name for name in ready() for _host in find(name).hosts]
        self._used: list[Any] = []
        self._made: dict[str, str] = {}
        """Topology → the testbed made for it."""
        self._process = os.getpid()
        atexit.register(self._remove_all)

    # ---- ducktape's interface

    def available(self) -> Any:
        """Return every topology's hosts, or none while a test runs: two tests at once would disturb each other."""
        return framework.spec([] if self._used else self._types)

    def used(self) -> Any:
        """Return the nodes of the running test."""
        return framework.spec([node.account.node_type for node in self._used])

    def all(self) -> Any:
        """Return every topology's hosts."""
        return framework.spec(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def do_alloc(self, cluster_spec: Any) -> list[Any]:
        """Return the hosts of the requested topology's testbed; provision the testbed if there is none.

        An error becomes the `problem` of the nodes, and the test raises it. If this method raised it, ducktape would
        retry without end, or lose all results.
        """
        types = [each or "" for each in framework.types_of(cluster_spec)]
        if not types:
            return []
        try:
            self._used = self._nodes(_topology_of(types))
        except TestbedError as error:
            print_progress(f"no testbed {', '.join(sorted({*types} - {''})) or 'of any topology'}: {error}")
            self._used = [framework.problem_node(str(error), each) for each in types]
        return list(self._used)

    def free_single(self, node: Any) -> None:
        """Release a node: its test has ended."""
        self._used.remove(node)
        node.account.close()

    # ---- testbeds

    def _nodes(self, topology: str) -> list[Any]:
        testbed = self._standing(topology) or self._make(topology)
        try:
            kept = topology in self._options.on
            return [
                framework.node(
                    TestbedAccount(testbed, host.name, topology),
                    node_type=topology,
                    testbed=testbed.name,
                    kept=kept,
                    options=self._options,
                    problem=None,
                )
                for host in testbed.topology.hosts
            ]
        finally:
            # ducktape forks the tests from this process, and a connection's threads do not survive a fork.
            testbed.close()

    def _standing(self, topology: str) -> Testbed | None:
        if topology in self._options.on:
            testbed = Testbed.attach(self._options.on[topology])
            require_whole_change(testbed)
            return testbed
        if topology not in self._made:
            return None
        try:
            testbed = Testbed.attach(self._made[topology])
            require_whole_change(testbed)
        except TestbedError as error:
            print_progress(f"making another testbed {topology}: {error}")
            self._remove([topology])
            return None
        if differences := testbed.shaping_differences():
            print_progress(f"making another testbed {topology}, this one is not as declared any more: {differences[0]}")
            testbed.close()
            self._remove([topology])
            return None
        return testbed

    def _make(self, name: str) -> Testbed:
        self._remove(list(self._made))
        topology = find(name)
        # AutoMQ is its own software, as in `of_case`.
        if self._options.kafka and topology.automq is None:
            topology = topology.with_kafka_version(str(parse_source(self._options.kafka)))
        own = f"suite-{secrets.token_hex(3)}"
        self._made[name] = own
        return Testbed.up(topology, name=own, ephemeral=True, progress=print_progress)

    def _remove(self, topologies: Iterable[str]) -> None:
        for topology in topologies:
            name = self._made[topology]
            engine = Engine()
            try:
                with states.lock(name, wait=True):
                    remove(engine, name)
            finally:
                engine.close()
            del self._made[topology]  # one that could not be removed is tried again, at the latest at the end

    def _remove_all(self) -> None:
        # A test's process inherits this handler, but only the process that provisioned the testbeds removes them.
        if os.getpid() == self._process:
            for name in self._made.values():
                # `testbed down` needs a separate process: an interpreter at its exit starts no threads.
                subprocess.run(
                    [sys.executable, "-P", "-m", "testbed.cli.main", "down", name],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    check=False,
                )


def _topology_of(types: Sequence[str]) -> str:
    """Return the topology whose hosts a test requests. Raise `UsageError` when the test names none, or several."""
    topology, *others = sorted(set(types))
    if others or not topology:
        raise UsageError(
            "a test has the hosts of one topology, and its nodes have the type of it: "
            '@cluster(num_nodes=3, node_type="three-brokers")'
        )
    return topology
