"""The capabilities of a Kafka release or cluster, by name. No other module compares versions.

A *release* has a capability when its jars or its format tool show it. A *cluster* has it in force when every node's
release has it and, if it depends on a feature, the cluster has finalized that feature's level. The table `DETECTED`
says how to detect each one: a new capability is a line there.
"""

import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from testbed.errors import TestbedError
from testbed.kafka.admin import Admin
from testbed.kafka.errors import CLUSTER_AUTHORIZATION_FAILED, KafkaError
from testbed.software.format import levels_of
from testbed.software.release import S3_STREAM, KafkaRelease, Logging
from testbed.topology.model import Topology


class Capability(StrEnum):
    """A capability that not every release from 3.9 on has."""

    LOG4J2 = "log4j2"
    """The release logs through log4j 2, and the format of its configuration can change log levels."""
    DYNAMIC_QUORUM = "dynamic-quorum"
    """KIP-853: controllers can be added and removed while the cluster runs."""
    CONSUMER_GROUPS = "consumer-groups"
    """KIP-848: the group coordinator assigns partitions to consumers."""
    SHARE_GROUPS = "share-groups"
    """KIP-932: several consumers share one partition's records."""
    STREAMS_GROUPS = "streams-groups"
    """KIP-1071: the group coordinator assigns the tasks of a Streams application."""
    ELIGIBLE_LEADER_REPLICAS = "eligible-leader-replicas"
    """KIP-966: replicas that left the ISR below min.insync.replicas may still be elected without loss."""
    TRANSACTIONS_V2 = "transactions-v2"
    """KIP-890: each transaction has an epoch of its own."""
    SHARED_STORAGE = "shared-storage"
    """Partitions lie in an object store that all brokers share. A move is done when the target leads."""
    MOVES_DATA = "moves-data"
    """A move copies a partition's log to the target, and removes the old log."""
    REPLICATES = "replicates"
    """A partition can have several replicas."""
    LISTS_REASSIGNMENTS = "lists-reassignments"
    """KIP-455: the controller lists a running move."""
    CANCELS_REASSIGNMENTS = "cancels-reassignments"
    """KIP-455: a running move can be cancelled."""
    THROTTLES_REPLICATION = "throttles-replication"
    """KIP-73: quotas limit what leaders send and followers fetch. Other systems may accept quotas and ignore them."""


@dataclass(frozen=True, slots=True)
class Detection:
    """The detection of a capability: in a release, and (with a feature) in a running cluster."""

    evidence: str
    """The detection as text, for errors and documents."""
    of_release: Callable[[KafkaRelease], bool]
    feature: str | None = None
    level: int = 0


@cache
def _has_class(release: KafkaRelease, jar: str, name: str) -> bool:
    path = name.replace(".", "/") + ".class"
    for each in release.jars:
        if each.startswith(f"{jar}-"):
            with zipfile.ZipFile(release.libs / each) as archive:
                if path in archive.namelist():
                    return True
    return False


_KRAFT_JAR, _KRAFT_CLASS = "kafka-server-common", "org.apache.kafka.server.common.KRaftVersion"


def _feature(name: str, level: int) -> Detection:
    """Return the detection of a feature that the release's format tool finalizes at this level or above."""
    return Detection(
        f"`kafka-storage format` of the release finalizes {name} at {level} or above",
        lambda release: levels_of(release).get(name, 0) >= level,
        name,
        level,
    )


_ON_BROKERS_DISKS = {
    Capability.MOVES_DATA: "a move copies the log",
    Capability.REPLICATES: "a partition may have several replicas",
    Capability.LISTS_REASSIGNMENTS: "a move under way is listed",
    Capability.CANCELS_REASSIGNMENTS: "a move under way can be cancelled",
    Capability.THROTTLES_REPLICATION: "replication's quotas hold",
}
"""What Kafka has only with partitions on its brokers' own disks, and its sign."""
DETECTED: Mapping[Capability, Detection] = {
    Capability.LOG4J2: Detection(
        "there is no reload4j-*.jar among the jars", lambda release: release.logging is Logging.LOG4J2
    ),
    # A class shows it: a new cluster need not have finalized the feature.
    Capability.DYNAMIC_QUORUM: Detection(
        f"{_KRAFT_JAR}-*.jar has the class {_KRAFT_CLASS}; in a cluster, kraft.version is finalized at 1 or above",
        lambda release: _has_class(release, _KRAFT_JAR, _KRAFT_CLASS),
        "kraft.version",
        1,
    ),
    Capability.CONSUMER_GROUPS: _feature("group.version", 1),
    Capability.SHARE_GROUPS: _feature("share.version", 1),
    Capability.STREAMS_GROUPS: _feature("streams.version", 1),
    Capability.ELIGIBLE_LEADER_REPLICAS: _feature("eligible.leader.replicas.version", 1),
    Capability.TRANSACTIONS_V2: _feature("transaction.version", 2),
    Capability.SHARED_STORAGE: Detection(
        f"there is a {S3_STREAM}*.jar among the jars", lambda release: release.shared_storage
    ),
    **{
        capability: Detection(
            f"{what}: there is no {S3_STREAM}*.jar among the jars, so that partitions lie on brokers' own disks",
            lambda release: not release.shared_storage,
        )
        for capability, what in _ON_BROKERS_DISKS.items()
    },
}
ON_DISK = frozenset(_ON_BROKERS_DISKS)
"""The capabilities of every Apache Kafka that moves depend on."""


class LacksCapability(TestbedError):
    """A request that this Kafka cannot fulfil; `.missing` are the capabilities."""

    def __init__(self, what: str, who: str, missing: frozenset[Capability]) -> None:
        self.missing = missing
        reasons = "; ".join(f"{each.value} (seen when {DETECTED[each].evidence})" for each in sorted(missing))
        super().__init__(f"{what} is not possible with {who}, which lacks {reasons}")


def of_release(release: KafkaRelease) -> frozenset[Capability]:
    """Return the capabilities of the software, in any cluster."""
    return frozenset(each for each, detection in DETECTED.items() if detection.of_release(release))


def of_cluster(releases: Iterable[KafkaRelease], finalized: Mapping[str, int]) -> frozenset[Capability]:
    """Return the capabilities in force in a cluster of these releases; `finalized` is each feature's level."""
    common = frozenset.intersection(*(of_release(release) for release in releases))
    return frozenset(
        each
        for each in common
        if (feature := DETECTED[each].feature) is None or finalized.get(feature, 0) >= DETECTED[each].level
    )


def of_software(topology: Topology) -> frozenset[Capability]:
    """Return the capabilities for moves of a topology's software, before the software is located. Pure."""
    return ON_DISK if topology.automq is None else frozenset({Capability.SHARED_STORAGE})


def require(wanted: Iterable[Capability], have: frozenset[Capability], what: str, who: str) -> None:
    """Raise `LacksCapability` when `who` lacks a capability that `what` needs."""
    missing = frozenset(wanted) - have
    if missing:
        raise LacksCapability(what, who, missing)


def of_running(admin: Admin) -> frozenset[Capability]:
    """Return the capabilities of a cluster, from the configuration of one of its brokers.

    A user without the right to describe that configuration is treated as a user of Apache Kafka: there the broker
    itself refuses an impossible request. Raise `KafkaError` when anything else fails.
    """
    brokers = admin.cluster().brokers
    if not brokers:
        return ON_DISK
    try:
        found = admin.broker_settings(brokers[0].id, [SHARED_STORAGE_KEY])
    except KafkaError as error:
        if error.name != CLUSTER_AUTHORIZATION_FAILED:
            raise
        return ON_DISK
    return frozenset({Capability.SHARED_STORAGE}) if found.get(SHARED_STORAGE_KEY) == "true" else ON_DISK


def require_of_running(admin: Admin, wanted: Iterable[Capability], what: str) -> None:
    """Raise `LacksCapability` when the cluster cannot do what `what` needs; nothing has been changed then."""
    who = f"the cluster at {admin.bootstrap}, whose brokers keep partitions in an object store ({SHARED_STORAGE_KEY})"
    require(wanted, of_running(admin), what, who)


SHARED_STORAGE_KEY = "elasticstream.enable"
"""The broker property by which AutoMQ keeps partitions in an object store; Apache Kafka does not know it."""
