"""A testbed's object store for its users: its endpoints, a client, its buckets, and its readiness."""

import http.client
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from testbed.errors import TestbedError
from testbed.hosts import Host
from testbed.hosts.host import in_parallel
from testbed.network.addresses import AddressPlan
from testbed.objectstore import server
from testbed.objectstore.server import PORT, Credentials, Server
from testbed.topology.model import Topology
from testbed.wait import wait_for

TIERED = "testbed-tiered"
AUTOMQ_DATA, AUTOMQ_OPS = "testbed-automq-data", "testbed-automq-ops"
AUTOMQ_BUCKETS = (AUTOMQ_DATA, AUTOMQ_OPS)
BUCKETS = (TIERED, *AUTOMQ_BUCKETS)
REGION = "us-east-1"
START_S = 60.0
ASK_S = 2.0
_LOOK_S = 0.1
Progress = Callable[[str], None]


class ObjectStoreError(TestbedError):
    """The object store refused, or did not answer."""


class ObjectStore:
    """The servers of one testbed, which form one store. From `Testbed.objectstore`."""

    def __init__(
        self, topology: Topology, plan: AddressPlan, hosts: Mapping[str, Host], credentials: Credentials
    ) -> None:
        self._topology, self._plan, self._hosts = topology, plan, hosts
        self.credentials = credentials

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Return every server's endpoint, `http://198.19.0.13:9000`, on the data network; each serves everything."""
        return server.endpoints(self._topology, self._plan)

    @property
    def endpoint(self) -> str:
        """Return the first server's endpoint."""
        return self.endpoints[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the hosts of the servers."""
        return tuple(host.name for host in self._topology.objectstores)

    def server(self, host: str) -> Server:
        """Return the server's process on a host. Raise `TestbedError` when the host has none."""
        if host not in self.names:
            raise TestbedError(f"{host} runs no object store; {', '.join(self.names)} of {self._topology.name} do")
        return Server(self._hosts[host], self._topology, self._plan)

    def client(self, *, endpoint: str | None = None, attempts: int = 3, timeout_s: float = 30.0) -> Any:
        """Return a new S3 client (boto3's), on the first server unless `endpoint` names another.

        A request is tried `attempts` times and waits `timeout_s` for an answer.
        """
        # Imported here: the import takes a third of a second, and only users of a store need it.
        from boto3.session import Session
        from botocore.config import Config
        from botocore.session import Session as Settings

        no_file = (None, None, os.devnull, None)
        # The user's profile has settings for another store, or names one that is in no file (AWS_PROFILE).
        own = Settings({"profile": (None,) * 4, "config_file": no_file, "credentials_file": no_file})
        own.set_credentials(self.credentials.access_key, self.credentials.secret_key)
        config = Config(
            use_fips_endpoint=False,
            use_dualstack_endpoint=False,
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": attempts, "mode": "standard"},
            connect_timeout=5,
            read_timeout=timeout_s,
            # Without the user's proxy: the data network is on this machine.
            proxies={},
        )
        session = Session(region_name=REGION, botocore_session=own)
        return session.client("s3", endpoint_url=endpoint or self.endpoint, config=config)

    def start(self, progress: Progress = lambda _text: None) -> None:
        """Start every server that does not run, wait until all are ready, and make the buckets."""
        begun = time.monotonic()
        in_parallel(self.names, lambda host: self.server(host).start())
        self.wait_ready()
        self.make_buckets()
        progress(f"object store ready after {time.monotonic() - begun:.1f} s")

    def silence(self, host: str) -> str:
        """Return why a server is not ready to read and write; empty when it is."""
        connection = http.client.HTTPConnection(str(self._plan.data_ip(host)), PORT, timeout=ASK_S)
        try:
            connection.request("GET", "/minio/health/cluster")
            answer = connection.getresponse()
            why = answer.headers.get("x-minio-write-quorum", "")
            quorum = f", too few drives to write (it takes {why})" if why and answer.status == 503 else ""
            return "" if answer.status == 200 else f"it answers {answer.status}{quorum}"
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        finally:
            connection.close()

    def ask(self) -> int:
        """Return the HTTP status of one signed request for a missing object: 404 when the store works.

        Raise `ObjectStoreError` when there is no answer.
        """
        with self._once() as client:
            status, why = _answer(client, "get_object", Key="there-is-no-such-object")
        if not status:
            raise ObjectStoreError(f"the object store does not answer: {why}")
        return status

    def answers(self, operation: str, count: int) -> Iterator[int]:
        """Send `count` puts, gets, deletes or lists. Yield the status of each answer: 200 on success, 0 without one."""
        key = {"Key": "a-test-of-an-operation"}
        requests: dict[str, tuple[str, dict[str, Any]]] = {
            "put": ("put_object", {**key, "Body": b""}),
            "get": ("get_object", {**key}),
            "delete": ("delete_object", {**key}),
            "list": ("list_objects_v2", {"MaxKeys": 1}),
        }
        method, request = requests[operation]
        with self._once() as client:
            for _ in range(count):
                yield _answer(client, method, **request)[0]

    def refusal(self) -> str:
        """Write and remove an object. Return why the store refuses it; empty when it accepts it."""
        with self._once() as client:
            _status, why = _answer(client, "put_object", Key="a-test-of-writing", Body=b"")
            return why or _answer(client, "delete_object", Key="a-test-of-writing")[1]

    def mark(self, without: str) -> bool:
        """Store an object through another server than `without`. Return whether one of the others accepted it."""
        return any(self._status_at(host, "put_object", Body=b"") == 200 for host in self.names if host != without)

    def unmarked(self) -> dict[str, int]:
        """Return host → the status with which its server refuses the object of `mark`, 0 without an answer.

        A server that is back says 404 until it reaches the others: its own drives lack what came without it.
        """
        found = {host: self._status_at(host, "get_object") for host in self.names}
        return {host: status for host, status in found.items() if status != 200}

    def remove_mark(self) -> None:
        """Remove the object of `mark`."""
        self._status_at(self.names[0], "delete_object")

    def _status_at(self, host: str, operation: str, **more: bytes) -> int:
        """Return the status of one request for the object of `mark` to one server; 0 without an answer."""
        with self._once(self.endpoints[self.names.index(host)]) as client:
            return _answer(client, operation, Key="a-test-of-all-servers", **more)[0]

    def _once(self, endpoint: str | None = None) -> "closing[Any]":
        """Return a client whose requests are tried once and wait `ASK_S`; a block closes it."""
        return closing(self.client(endpoint=endpoint, attempts=1, timeout_s=ASK_S))

    def wait_ready(self, *, timeout_s: float = START_S) -> None:
        """Wait until every server is ready. Raise an error at once when one has died."""

        def look() -> dict[str, str]:
            found = {host: why for host in self.names if (why := self.silence(host))}
            for host in found:
                process = self.server(host)
                if process.pid() is None:
                    raise ObjectStoreError(f"MinIO on {host} has ended; its log ends with:\n{process.log_tail(15)}")
            return found

        wait_for(look, lambda found: not found, timeout_s, _LOOK_S, f"the object store of {self._topology.name}")

    def make_buckets(self) -> None:
        """Make the missing ones of `BUCKETS`. Raise `ObjectStoreError` on failure."""
        from botocore.exceptions import BotoCoreError, ClientError

        with closing(self.client()) as client:
            try:
                there = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
                for name in BUCKETS:
                    if name not in there:
                        client.create_bucket(Bucket=name)
            except (BotoCoreError, ClientError) as error:
                raise ObjectStoreError(f"the object store's buckets cannot be made: {error}") from error

    def require_buckets(self, names: Iterable[str]) -> None:
        """Raise `ObjectStoreError` when a bucket of these cannot be reached with the testbed's own credentials.

        This check precedes the brokers' start: a broker without a bucket logs a thousand unclear lines.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        problems = []
        with closing(self.client()) as client:
            for name in names:
                try:
                    client.head_bucket(Bucket=name)
                except (BotoCoreError, ClientError) as error:
                    problems.append(f"{name} at {self.endpoint}: {error}")
        if problems:
            raise ObjectStoreError(f"the object store's buckets cannot be reached: {'; '.join(problems)}")

    def empty_buckets(self) -> None:
        """Remove every object of `BUCKETS`, whose cluster is gone. Raise `ObjectStoreError` on failure.

        A new cluster would find objects of the last one, and those of every run would fill the disk.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            with closing(self.client()) as client:
                for name in BUCKETS:
                    # A page has at most the 1000 objects that one request may delete.
                    for page in client.get_paginator("list_objects_v2").paginate(Bucket=name):
                        some = {"Objects": [{"Key": each["Key"]} for each in page.get("Contents", ())], "Quiet": True}
                        if not some["Objects"]:
                            continue
                        if errors := client.delete_objects(Bucket=name, Delete=some).get("Errors"):
                            raise ObjectStoreError(f"bucket {name} cannot be emptied: {errors[0]}")
        except (BotoCoreError, ClientError) as error:
            raise ObjectStoreError(f"the object store cannot be emptied: {error}") from error


def _answer(client: Any, operation: str, **request: Any) -> tuple[int, str]:
    """Return the HTTP status of a request's answer, 0 without one, and why the request failed; empty on success."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        getattr(client, operation)(Bucket=TIERED, **request)
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"]), str(error)
    except BotoCoreError as error:
        return 0, str(error)
    return 200, ""
