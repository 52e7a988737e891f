"""One connection to a cluster over kafka-python: bounded in time, its errors translated.

kafka-python's admin client does its I/O on its own thread and is thread-safe; so is a `Connection`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import kafka.errors as client_errors
from kafka.admin import KafkaAdminClient
from kafka.cluster import collect_hosts
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from testbed.errors import UsageError
from testbed.kafka.command_config import CommandConfig
from testbed.kafka.errors import NOT_CONTROLLER, REQUEST_TIMED_OUT, KafkaError, UnreachableError, protocol_name

_T = TypeVar("_T")
_RETRY_INTERVAL_S = 0.05
_NO_CONTROLLER = "Failed to find active controller id"
"""The client's RuntimeError when the second broker that it asked was not the controller either."""
_CLOSED = "NetworkSelector closed"
"""The client's RuntimeError after its end."""
_LOGIN_REFUSED = (client_errors.SaslAuthenticationFailedError, client_errors.UnsupportedSaslMechanismError)


class _NotSentError(client_errors.KafkaConnectionError):  # type: ignore[misc]
    """A connection that failed before the client sent the request."""


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    """A manager that separates a failed connection attempt from a connection lost with a request in flight.

    It also reports a refused login, which the client's own manager would retry until the timeout.
    The client drops what it reads together with the connection's end. A broker closes the connection after it refused
    a login, so a client on a busy machine would never learn why.
    """

    refusal: str | None = "nothing answers at that address"
    """The reason why the last connection attempt failed; None when it succeeded."""
    login: Exception | None = None
    """The answer of the last broker that refused the login."""

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        try:
            transport = await super()._build_transport(node, timeout_at=timeout_at)
        except client_errors.KafkaConnectionError as error:
            self.refusal = f"broker {node.node_id} at {node.host}:{node.port}: {error.args[0] if error.args else error}"
            raise _NotSentError(self.refusal) from error
        received = transport._sock_recv
        transport._sock_recv = lambda: _data_first(*received())
        self.refusal = None
        return transport

    async def _connect(self, node: Any, conn: Any, **named: Any) -> None:
        await super()._connect(node, conn, **named)
        failure = conn.init_future.exception if conn.init_future.is_done else None
        if isinstance(failure, _LOGIN_REFUSED):
            self._auth_failures[node.node_id] = self.login = failure


def _data_first(data: bytes, error: Exception | None) -> tuple[bytes, Exception | None]:
    """Return what was read without the connection's end: the next read meets the end again."""
    return data, None if data else error


class Connection:
    """A started admin client that translates its exceptions.

    No request takes longer than ``timeout_s`` to connect plus ``timeout_s`` for the answer.
    Raises `UsageError` for a bootstrap that is no list of addresses, `UnreachableError` when no bootstrap server
    answers in time, `KafkaError` when the login is refused.
    """

    def __init__(
        self, bootstrap: str | Sequence[str], timeout_s: float, client_id: str, security: CommandConfig | None = None
    ) -> None:
        servers = _addresses(bootstrap)
        self.bootstrap = ",".join(servers)
        self.timeout_s = timeout_s
        timeout_ms = int(timeout_s * 1000)
        started: list[Any] = []

        def net_client(**configs: Any) -> Any:
            # The admin client has no setting for the time to set up a connection (10 to 30 s).
            configs |= {
                "socket_connection_setup_timeout_ms": timeout_ms,
                "socket_connection_setup_timeout_max_ms": timeout_ms,
            }
            selector = NetworkSelector(**configs)
            client = KafkaNetClient(net=selector, manager=_Manager(selector, **configs), **configs)
            started.append(client)
            return client

        try:
            self.client: Any = KafkaAdminClient(
                bootstrap_servers=servers,
                client_id=client_id,
                request_timeout_ms=timeout_ms,
                bootstrap_timeout_ms=timeout_ms,
                reconnect_backoff_max_ms=1000,
                metadata_max_age_ms=30_000,
                kafka_client=net_client,
                **(security.kafka_python() if security else {}),
            )
        except client_errors.KafkaError as error:
            for client in started:  # otherwise its I/O thread would retry for ever
                client.close()
                client._net.stop()
            # The client asks each bootstrap server before it reports a refusal: a slow one may use up the timeout.
            error = next((client._manager.login for client in started if client._manager.login), error)
            if isinstance(error, _LOGIN_REFUSED):
                why = str(error.args[0]).removeprefix(f"{type(error).__name__}: ") if error.args else None
                raise KafkaError(
                    f"log in to the cluster at {self.bootstrap}", protocol_name(error.errno), why
                ) from error
            whys = [client._manager.refusal or _unanswered(security) for client in started]
            why = "; ".join(whys) if isinstance(error, client_errors.KafkaTimeoutError) and whys else _words(error)
            raise UnreachableError(f"cluster at {self.bootstrap} within {timeout_s:g} s", "NO_ANSWER", why) from error

    def close(self) -> None:
        """End the connection and its thread."""
        self.client.close()

    def call(self, what: str, function: Callable[..., _T], *args: Any, **named: Any) -> _T:
        """Call one of the client's functions and return its result; ``what`` describes the request in errors.

        The client chooses the broker. If a connection to that broker fails, or the client skips it after a recent
        failure, no request was sent: another broker is asked, until the timeout. The same holds while no asked broker
        is the controller.
        """
        return self._call(what, None, lambda: function(*args, **named))

    def send(self, what: str, request: Any, broker_id: int | None) -> Any:
        """Send a protocol message to a given broker (None: any) and return its response.

        The client's public functions choose the broker themselves and drop the error code of DescribeConfigs. Only the
        client's connection manager can ask one broker for *its* configuration in force.
        """
        manager = self.client._manager
        return self._call(what, broker_id, lambda: manager.run(manager.send, request, broker_id))

    def _call(self, what: str, broker_id: int | None, function: Callable[[], _T]) -> _T:
        deadline = time.monotonic() + self.timeout_s
        refreshed = False
        while True:
            try:
                return function()
            except (_NotSentError, client_errors.NodeNotReadyError) as error:
                refused = isinstance(error, _NotSentError)
                if (refused and broker_id is not None) or time.monotonic() >= deadline:
                    why = str(error.args[0]) if refused else f"{self.timeout_s:g} s"
                    raise UnreachableError(what, "BROKER_NOT_AVAILABLE", why) from error
                # The client would continue to ask the broker that it takes for the controller.
                self.client._controller_id = None
                time.sleep(_RETRY_INTERVAL_S)
            except RuntimeError as error:
                if _CLOSED in str(error):  # another thread has closed the connection
                    raise UnreachableError(what, "NETWORK_EXCEPTION", "the connection is closed") from error
                if _NO_CONTROLLER not in str(error):
                    raise
                if time.monotonic() >= deadline:
                    why = f"no broker that was asked is the controller, {self.timeout_s:g} s long"
                    raise UnreachableError(what, NOT_CONTROLLER, why) from error
                self.client._controller_id = None
                time.sleep(_RETRY_INTERVAL_S)
            except client_errors.UnknownBrokerIdError as error:
                if refreshed:  # the second time the error is the cluster's, not that of stale metadata
                    raise UnreachableError(what, "BROKER_NOT_AVAILABLE", "no such broker is known") from error
                # A fenced broker is no longer listed, and the client would ask the one it takes for the controller on.
                self.client._controller_id = None
                self._refresh(what)
                refreshed = True
            except client_errors.RequestTimedOutError as error:
                self.client._controller_id = None  # the next request asks another broker than the one that hangs
                raise UnreachableError(what, REQUEST_TIMED_OUT, f"{self.timeout_s:g} s") from error
            except client_errors.BrokerResponseError as error:
                detail = str(error.args[0]) if error.args else None
                raise KafkaError(what, protocol_name(error.errno), detail) from error
            except client_errors.KafkaError as error:
                raise UnreachableError(what, "NETWORK_EXCEPTION", _words(error)) from error

    def _refresh(self, what: str) -> None:
        """Refresh the client's list of brokers (a broker may have joined since). Raise `UnreachableError`."""
        manager = self.client._manager

        async def update() -> None:
            await manager.wait_for(manager.cluster.request_update(), self.timeout_s * 1000)

        try:
            manager.run(update)
        except client_errors.KafkaError as error:
            why = "no such broker is known, and the brokers could not be listed"
            raise UnreachableError(what, "BROKER_NOT_AVAILABLE", why) from error


def _addresses(bootstrap: str | Sequence[str]) -> list[str]:
    """Return the bootstrap servers. Raise `UsageError` for one that is no address: the client raises a ValueError."""
    text = bootstrap if isinstance(bootstrap, str) else ",".join(bootstrap)
    servers = [server for each in text.split(",") if (server := each.strip())]
    try:
        usable = bool(servers) and all(host and 0 < port < 65536 for host, port, _family in collect_hosts(servers))
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"bootstrap {text!r}: must be HOST:PORT,…, such as kafka:9092")
    return servers


def _words(error: client_errors.KafkaError) -> str:
    """Return the client's reason. Its own text begins with the name of the exception, and may be nothing else."""
    timed_out = isinstance(error, client_errors.KafkaTimeoutError)
    otherwise = "no answer in time" if timed_out else "the connection ended before the answer"
    return "; ".join(str(each) for each in error.args) or otherwise


def _unanswered(security: CommandConfig | None) -> str:
    protocol = security.protocol if security else "PLAINTEXT"
    return (
        f"something listens there but does not answer as a {protocol} listener; "
        "it may expect another protocol (see --command-config), the broker may be too slow to answer in this time, "
        "or no broker of the cluster serves yet"
    )
