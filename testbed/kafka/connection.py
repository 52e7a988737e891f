"""One connection to a cluster over kafka-python: bounded in time, its errors translated.

kafka-python's admin client does its I/O on a thread of its own and may be called from several threads at
once; so may a `Connection`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import kafka.errors as client_errors
from kafka.admin import KafkaAdminClient
from kafka.net.compat import KafkaNetClient

from testbed.kafka.errors import KafkaError, UnreachableError, protocol_name

_T = TypeVar("_T")
_RETRY_INTERVAL_S = 0.05


class Connection:
    """A started admin client, and the one place where its exceptions become ours.

    No request takes longer than ``timeout_s`` to connect plus ``timeout_s`` to be answered.
    Raises `UnreachableError` when no bootstrap server answers in time.
    """

    def __init__(self, bootstrap: str | Sequence[str], timeout_s: float, client_id: str) -> None:
        servers = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
        self.bootstrap = ",".join(servers)
        self.timeout_s = timeout_s
        timeout_ms = int(timeout_s * 1000)
        started: list[Any] = []

        def net_client(**configs: Any) -> Any:
            # The admin client has no setting for how long a connection may take to be set up (10 to 30 s).
            client = KafkaNetClient(
                **configs,
                socket_connection_setup_timeout_ms=timeout_ms,
                socket_connection_setup_timeout_max_ms=timeout_ms,
            )
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
            )
        except client_errors.KafkaError as error:
            for client in started:  # its I/O thread would go on trying for ever
                client.close()
                client._net.stop()
            raise UnreachableError(
                f"cluster at {self.bootstrap} within {timeout_s:g} s", "NO_ANSWER", str(error)
            ) from error

    def close(self) -> None:
        """End the connection and its thread."""
        self.client.close()

    def call(self, what: str, function: Callable[..., _T], *args: Any, **named: Any) -> _T:
        """Call one of the client's functions; ``what`` says in an error what was being done.

        While the client waits to reconnect to a broker it refuses at once, without having sent anything: that
        is tried again until the timeout.
        """
        deadline = time.monotonic() + self.timeout_s
        refreshed = False
        while True:
            try:
                return function(*args, **named)
            except client_errors.NodeNotReadyError as error:
                if time.monotonic() >= deadline:
                    raise UnreachableError(what, "BROKER_NOT_AVAILABLE", f"{self.timeout_s:g} s") from error
                time.sleep(_RETRY_INTERVAL_S)
            except client_errors.UnknownBrokerIdError as error:
                if refreshed:  # the second time it is the cluster that says so, not an old answer
                    raise UnreachableError(what, "BROKER_NOT_AVAILABLE", "no such broker is known") from error
                self._refresh()
                refreshed = True
            except client_errors.RequestTimedOutError as error:
                raise UnreachableError(what, "REQUEST_TIMED_OUT", f"{self.timeout_s:g} s") from error
            except client_errors.BrokerResponseError as error:
                detail = str(error.args[0]) if error.args else None
                raise KafkaError(what, protocol_name(error.errno), detail) from error
            except client_errors.KafkaError as error:
                raise UnreachableError(what, "NETWORK_EXCEPTION", repr(error)) from error

    def send(self, what: str, request: Any, broker_id: int | None) -> Any:
        """Send a protocol message to a given broker (None: any) and return its response.

        The client's public functions choose the broker themselves and drop the error code of DescribeConfigs;
        to ask one broker what *it* has in force there is only its connection manager.
        """
        manager = self.client._manager
        return self.call(what, manager.run, manager.send, request, broker_id)

    def _refresh(self) -> None:
        """Have the client learn the brokers anew (a broker may have joined since)."""
        manager = self.client._manager

        async def update() -> None:
            await manager.wait_for(manager.cluster.request_update(), self.timeout_s * 1000)

        manager.run(update)
