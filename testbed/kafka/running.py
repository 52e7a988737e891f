"""What a running cluster can do of what a move hangs on: asked of a broker, where there is no release to look at."""

from collections.abc import Iterable

from testbed.kafka.admin import Admin
from testbed.kafka.capabilities import ON_DISK, Capability, require
from testbed.kafka.errors import CLUSTER_AUTHORIZATION_FAILED, KafkaError
from testbed.kafka.shared_storage import SHARED_STORAGE_KEY


def of_running(admin: Admin) -> frozenset[Capability]:
    """Capabilities of a cluster, by what one of its brokers goes by.

    Who may not describe a broker's configuration is taken to talk to Apache Kafka: there a refusal comes from the
    broker all the same. Raises `KafkaError` for anything else that fails.
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
    """Raise `LacksCapability` unless the cluster can do what `what` needs. Nothing has been changed then."""
    who = f"the cluster at {admin.bootstrap}, whose brokers keep partitions in an object store ({SHARED_STORAGE_KEY})"
    require(wanted, of_running(admin), what, who)
