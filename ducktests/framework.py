"""The parts of ducktape that this package uses, with types: ducktape has none. No other module imports ducktape."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from logging import Logger
from typing import Any, Protocol, TypeVar

import ducktape.cluster.cluster
import ducktape.cluster.linux_remoteaccount
import ducktape.services.service
import ducktape.tests.runner
import ducktape.tests.test
from ducktape.cluster.cluster_node import ClusterNode
from ducktape.cluster.cluster_spec import ClusterSpec
from ducktape.cluster.node_spec import NodeSpec
from ducktape.cluster.remoteaccount import RemoteAccountSSHConfig
from ducktape.mark import matrix, parametrize
from ducktape.mark.resource import cluster as cluster_mark
from ducktape.tests.test_context import TestContext

_Test = TypeVar("_Test", bound=Callable[..., None])
LINUX = "linux"


class DucktapeContext(Protocol):
    """The context of a test; `globals` is the value of `--globals`."""

    globals: Mapping[str, Any]
    logger: Logger
    test_index: int


class Cluster(ducktape.cluster.cluster.Cluster):  # type: ignore[misc]  # ducktape has no types
    """`ducktape.cluster.cluster.Cluster`."""


class Account(ducktape.cluster.linux_remoteaccount.LinuxRemoteAccount):  # type: ignore[misc]  # no types
    """`LinuxRemoteAccount`: a host over SSH."""

    hostname: str
    _ssh_client: Any


class Failed(AssertionError):
    """The verdict is fail. ducktape knows only failed tests: an exception's name is the verdict."""


class Inconclusive(AssertionError):
    """The verdict is inconclusive. ducktape has no such result and counts the test as failed."""


class Service(ducktape.services.service.Service):  # type: ignore[misc]  # no types
    """`ducktape.services.service.Service`."""

    nodes: list[Any]
    logger: Logger


class Test(ducktape.tests.test.Test):  # type: ignore[misc]  # no types
    """`ducktape.tests.test.Test`."""

    test_context: DucktapeContext
    logger: Logger


def listen_on_loopback_only() -> None:
    """Make ducktape's receiver listen on loopback only: it unpickles any input, and by default listens everywhere."""

    def start(receiver: Any) -> None:
        receiver.port = receiver.socket.bind_to_random_port(
            "tcp://127.0.0.1",
            min_port=receiver.min_port,
            max_port=receiver.max_port + 1,
            max_tries=2 * (receiver.max_port + 1 - receiver.min_port),
        )

    ducktape.tests.runner.Receiver.start = start


def ssh_config(name: str, address: str, user: str, key: str) -> Any:
    """Return the SSH configuration of a host, as `account.ssh_config`."""
    return RemoteAccountSSHConfig(host=name, hostname=address, user=user, port=22, identityfile=key)


def problem_node(problem: str, node_type: str) -> Any:
    """Return a node of a testbed that could not be provisioned."""
    account = Account(ssh_config("none", "", "", ""), node_type=node_type, ssh_exception_checks=None)
    return ClusterNode(account, node_type=node_type, testbed=None, kept=True, options=None, problem=problem)


def node(account: Account, **attributes: object) -> Any:
    """Return a node of a cluster."""
    return ClusterNode(account, **attributes)


def spec(types: Iterable[str]) -> Any:
    """Return a specification of Linux nodes, one for each type."""
    return ClusterSpec([NodeSpec(LINUX, each) for each in types])


def types_of(cluster_spec: Any) -> list[str | None]:
    """Return the node types that a specification requests, one for each node."""
    return [each.node_type for each in cluster_spec]


def results_folder(context: DucktapeContext) -> str:
    """Return the folder of a test's results."""
    return str(TestContext.results_dir(context, context.test_index))


def parametrized(values: Sequence[tuple[Mapping[str, object], int, str]]) -> Callable[[_Test], _Test]:
    """Return a decorator that makes a test for each of `values`: arguments, nodes, their type. No values: no test."""

    def mark(method: _Test) -> _Test:
        if not values:
            matrix(case=[])(method)
        for arguments, nodes, node_type in values:
            parametrize(**arguments)(method)
            # ducktape applies this to every marked test without nodes: only the test marked above has none.
            cluster_mark(num_nodes=nodes, node_type=node_type)(method)
        return method

    return mark
