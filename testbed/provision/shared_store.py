"""A cluster whose partitions lie in the object store: is it as declared, and how its store is emptied."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from testbed.errors import TestbedError
from testbed.hosts.host import in_parallel
from testbed.kafka.capabilities import SHARED_STORAGE_KEY
from testbed.kafka.node import BALANCER, ONE_REPLICA, server_properties
from testbed.objectstore.store import AUTOMQ_DATA, AUTOMQ_OPS

if TYPE_CHECKING:
    from testbed.provision.testbed import Progress, Testbed

BUCKETS = (AUTOMQ_DATA, AUTOMQ_OPS)
_ASKED = (SHARED_STORAGE_KEY, BALANCER, *ONE_REPLICA)
_MOST_DELETED = 1000


class NotAsDeclared(TestbedError):
    """The cluster is up, and is not what its topology says; the message has every difference."""


def require_buckets(testbed: "Testbed") -> None:
    """Raise `NotAsDeclared` when a bucket cannot be reached with the testbed's own credentials.

    Before brokers are started: one that has no bucket says so in a thousand lines, and not plainly.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    store = testbed.objectstore
    client = store.client()
    problems = []
    try:
        for bucket in BUCKETS:
            try:
                client.head_bucket(Bucket=bucket)
            except (BotoCoreError, ClientError) as error:
                problems.append(f"bucket {bucket} at {store.endpoint}: {error}")
    finally:
        client.close()
    if problems:
        raise NotAsDeclared(f"{testbed.name} cannot start: {'; '.join(problems)}")


def require_as_declared(testbed: "Testbed", progress: "Progress") -> None:
    """Ask every broker what it goes by; raise `NotAsDeclared` naming each setting that is not as it was given.

    What a broker does not tell, because it knows no such setting, is told as that.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}

    def ask(host: str) -> None:
        found[host] = _differences(testbed, host)

    in_parallel([host.name for host in testbed.topology.brokers], ask)
    silent = sorted({key for _wrong, unknown in found.values() for key in unknown})
    if silent:
        progress(f"the brokers do not tell {', '.join(silent)}: not checked")
    wrong = [text for host in sorted(found) for text in found[host][0]]
    if wrong:
        raise NotAsDeclared(f"{testbed.name} is not as declared:\n  " + "\n  ".join(wrong))


def _differences(testbed: "Testbed", name: str) -> tuple[list[str], list[str]]:
    """What one broker has otherwise, and what it does not tell."""
    host, state = testbed.topology.host(name), testbed.state
    assert host.node_id is not None
    able = testbed.software.kafka(state.kafka[name]).capabilities
    given = server_properties(
        testbed.topology, host, testbed.plan, state.overlay, able=able, cluster_id=state.cluster_id
    )
    with testbed.admin() as admin:
        return compared(name, given, admin.broker_settings(host.node_id, _ASKED))


def compared(host: str, given: Mapping[str, str], told: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Which settings a broker has otherwise than it was given, and which it does not tell. Pure."""
    wrong = [
        f"{host} has {key}={told[key]}, was given {given[key]}"
        for key in _ASKED
        if key in told and told[key] != given[key]
    ]
    return wrong, [key for key in _ASKED if key not in told]


def empty_buckets(testbed: "Testbed") -> None:
    """Remove every object: a cluster that begins anew would find those of the last one. Raises `NotAsDeclared`."""
    from botocore.exceptions import BotoCoreError, ClientError

    client = testbed.objectstore.client()
    try:
        for bucket in BUCKETS:
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
                keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
                for begin in range(0, len(keys), _MOST_DELETED):
                    some = {"Objects": keys[begin : begin + _MOST_DELETED], "Quiet": True}
                    errors = client.delete_objects(Bucket=bucket, Delete=some).get("Errors", ())
                    if errors:
                        raise NotAsDeclared(f"bucket {bucket} cannot be emptied: {errors[0]}")
    except (BotoCoreError, ClientError) as error:
        raise NotAsDeclared(f"the object store cannot be emptied: {error}") from error
    finally:
        client.close()
