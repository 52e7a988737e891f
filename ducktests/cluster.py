"""`--cluster ducktests.cluster.TestbedCluster`: the hosts of a testbed are the nodes, its topology is their type.

A testbed is brought up when the first test asks for its topology, stays for the tests after it, and makes room for
the next topology: one at a time, as two would measure each other. It belongs to ducktape's process: `testbed gc`
collects it when that was killed.
"""

import atexit
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from ducktests import framework
from ducktests.account import TestbedAccount, reach
from ducktests.dying import die_with_suite
from ducktests.options import Options, read_options
from testbed.errors import TestbedError
from testbed.provision import state as states
from testbed.provision.containers import Engine
from testbed.provision.resources import remove
from testbed.provision.testbed import Testbed
from testbed.runner.ducktape import tell
from testbed.software.source import parse_source
from testbed.topology.find import find, ready


class TestbedCluster(framework.Cluster):
    """One testbed at a time. See the module."""

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

    # ---- what ducktape asks

    def available(self) -> Any:
        """Every topology's hosts, or none while a test runs: two tests at once would measure each other."""
        return framework.spec([] if self._used else self._types)

    def used(self) -> Any:
        """The nodes a test has."""
        return framework.spec([node.account.node_type for node in self._used])

    def all(self) -> Any:
        """Every topology's hosts."""
        return framework.spec(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def do_alloc(self, cluster_spec: Any) -> list[Any]:
        """The hosts of the testbed of the topology asked for, which is brought up if need be.

        What goes wrong is the `problem` of the nodes, for the test to raise: ducktape would try without end, or lose
        all results.
        """
        wanted = {each or "" for each in framework.types_of(cluster_spec)}
        assert len(wanted) == 1, f"a test has the hosts of one topology, not of {sorted(wanted)}"
        topology = wanted.pop()
        try:
            self._used = self._nodes(topology)
        except TestbedError as error:
            tell(f"no testbed {topology}: {error}")
            self._used = [framework.problem_node(str(error), topology) for _host in find(topology).hosts]
        return list(self._used)

    def free_single(self, node: Any) -> None:
        """A test has ended, or lets go of a host."""
        self._used.remove(node)
        node.account.close()

    # ---- testbeds

    def _nodes(self, topology: str) -> list[Any]:
        testbed = self._standing(topology) or self._make(topology)
        try:
            kept = topology in self._options.on
            return [
                framework.node(
                    TestbedAccount(reach(testbed, host.name), topology),
                    node_type=topology,
                    testbed=testbed.name,
                    kept=kept,
                    options=self._options,
                    problem=None,
                )
                for host in testbed.topology.hosts
            ]
        finally:
            # The tests are forked from here, and threads of connections do not survive that.
            testbed.close()

    def _standing(self, topology: str) -> Testbed | None:
        if topology in self._options.on:
            return Testbed.attach(self._options.on[topology])
        if topology not in self._made:
            return None
        try:
            testbed = Testbed.attach(self._made[topology])
        except TestbedError as error:
            tell(f"making another testbed {topology}: {error}")
            self._remove([topology])
            return None
        if differences := testbed.shaping_differences():
            tell(f"making another testbed {topology}, this one is not as declared any more: {differences[0]}")
            testbed.close()
            self._remove([topology])
            return None
        return testbed

    def _make(self, name: str) -> Testbed:
        self._remove(list(self._made))
        topology = find(name)
        if self._options.kafka:
            topology = topology.with_kafka_version(str(parse_source(self._options.kafka)))
        own = f"suite-{secrets.token_hex(3)}"
        self._made[name] = own
        return Testbed.up(topology, name=own, ephemeral=True, progress=tell)

    def _remove(self, topologies: Iterable[str]) -> None:
        for topology in topologies:
            name = self._made.pop(topology)
            engine = Engine()
            try:
                with states.lock(name, wait=True):
                    remove(engine, name)
            finally:
                engine.close()

    def _remove_all(self) -> None:
        # A test's process has inherited this, and is not the one to do it.
        if os.getpid() == self._process:
            for name in self._made.values():
                # A process of its own: an interpreter that is about to end starts no threads any more.
                subprocess.run(
                    [sys.executable, "-P", "-m", "testbed.cli.main", "down", name],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    check=False,
                )
