"""A testbed for users of testcontainers: `with ShapedKafka("two-brokers") as kafka: kafka.get_bootstrap_server()`.

The testbed makes and removes its containers, with its own labels. testcontainers' reaper is never started: after a
killed process, `testbed gc` removes what it left.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.api import UserTestbed
from testbed.errors import TestbedError, UsageError
from testbed.extras import missing_extra
from testbed.software.engine import EngineSocket
from testbed.topology import Topology
from testbed.topology.host import names_by_id

try:
    from testcontainers.core.container import DockerContainer
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(missing_extra(error) or str(error), name=error.name) from error

ENGINE = "DOCKER_HOST"


@contextmanager
def _own_engine() -> Iterator[dict[str, str]]:
    """Yield an environment that names the testbed's engine; at the end DOCKER_HOST is as before.

    testcontainers prefers its own properties and the docker context, and sets DOCKER_HOST for the whole process.
    """
    before = os.environ.get(ENGINE)
    try:
        yield {**os.environ, ENGINE: EngineSocket.from_environment().address}
    finally:
        if before is None:
            os.environ.pop(ENGINE, None)
        else:
            os.environ[ENGINE] = before


class ShapedHost(DockerContainer):
    """A host of a running testbed as a `DockerContainer`. The testbed starts and removes it; `start`, `stop` do not."""

    __test__ = False

    def __init__(self, testbed: UserTestbed, host: str) -> None:
        if testbed.topology.exists or testbed.topology.remote_machine_of(testbed.topology.host(host)):
            raise UsageError(
                f"{host} is no container of this machine's engine; `testbed.hosts[{host!r}]` runs commands on it"
            )
        found = [each.id for each in testbed.engine.containers(testbed.name) if each.host == host]
        if not found:
            raise TestbedError(f"{testbed.name}: the container of {host} is gone")
        with _own_engine() as environment:
            super().__init__(f"host-{host}", docker_client_kw={"environment": environment})
        self.testbed, self.host = testbed, host
        self._container = self.get_docker_client().client.containers.get(found[0])
        self.image = self._container.attrs["Config"]["Image"]

    def start(self) -> Self:
        """Return the host: it runs already."""
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:  # noqa: ARG002 - as testcontainers has it
        """Close the connection to the engine; the host stays until its testbed is removed."""
        self.get_docker_client().client.close()

    def get_container_host_ip(self) -> str:
        """Return the address of its shaped NIC."""
        return str(self.testbed.plan.data_ip(self.host))

    def _get_exposed_port(self, port: int) -> int:
        # The driver reaches the host's address itself: no port is mapped.
        return port


class ShapedKafka:
    """Kafka brokers behind shaped NICs, with the methods that testcontainers' `KafkaContainer` has.

    `start` provisions a testbed of its own; it is garbage once this process is dead. `of` wraps a running testbed.
    """

    __test__ = False

    def __init__(self, topology: str | Path | Topology = "three-brokers", *, name: str | None = None) -> None:
        self._topology = topology
        self._name = name or f"kafka-{secrets.token_hex(4)}"
        self._testbed: UserTestbed | None = None
        self._owned = False
        self._hosts: dict[str, ShapedHost] = {}

    @classmethod
    def of(cls, testbed: UserTestbed) -> Self:
        """Return the Kafka of a running testbed; `stop` leaves the testbed up."""
        made = cls(testbed.topology, name=testbed.name)
        made._testbed = testbed
        return made

    def start(self) -> Self:
        """Provision the testbed and return this object; do nothing when it runs. Raise `TestbedError` on failure."""
        if self._testbed is None:
            self._testbed = UserTestbed.up(self._topology, name=self._name, ephemeral=True)
            self._owned = True
        return self

    def stop(self) -> None:
        """Remove the testbed that `start` made; do nothing when it does not run. One that was up before stays up."""
        for host in self._hosts.values():
            host.stop()
        self._hosts.clear()
        testbed, owned = self._testbed, self._owned
        self._testbed, self._owned = None, False
        if testbed is not None and owned:
            with testbed:
                pass  # the testbed's own block removes what `up` made, and closes the connections

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def testbed(self) -> UserTestbed:
        """Return the testbed. Raise `UsageError` before `start`."""
        if self._testbed is None:
            raise UsageError("this ShapedKafka does not run; use it in a `with` block, or call `start` first")
        return self._testbed

    @property
    def bootstrap_servers(self) -> str:
        """Return the brokers' addresses, separated by commas."""
        return ",".join(self.testbed.bootstrap)

    def get_bootstrap_server(self) -> str:
        """Return `bootstrap_servers`, as testcontainers' `KafkaContainer` names it."""
        return self.bootstrap_servers

    def broker(self, node_id: int) -> ShapedHost:
        """Return the host of a broker. Raise `UsageError` when no broker has that id."""
        brokers = names_by_id(self.testbed.topology.brokers)
        if node_id not in brokers:
            known = ", ".join(str(each) for each in brokers)
            raise UsageError(f"{self.testbed.topology.name} has no broker {node_id}; its brokers are {known}")
        return self.host(brokers[node_id])

    def host(self, name: str) -> ShapedHost:
        """Return a host by its name in the topology. Raise `UsageError` when the topology has no such host."""
        names = [host.name for host in self.testbed.topology.hosts]
        if name not in names:
            raise UsageError(f"{self.testbed.topology.name} has no host {name}; its hosts are {', '.join(names)}")
        if name not in self._hosts:
            self._hosts[name] = ShapedHost(self.testbed, name)
        return self._hosts[name]
