"""How much of a tiered topic still lies on the brokers, and waiting until it is little enough."""

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.kafka.admin import Admin
from testbed.tiered.remote import RemoteLog
from testbed.tiered.topics import LOCAL_SHARE
from testbed.wait import wait_for


@dataclass(frozen=True, slots=True)
class Local:
    """A topic's bytes on the brokers and in the store.

    `replicas` has the local log of each (partition, broker); `remote` each partition's bytes in the store.
    """

    replicas: Mapping[tuple[int, int], int]
    remote: Mapping[int, int]

    @property
    def share(self) -> float:
        """The largest share that any replica has on its broker, of all its partition's bytes.

        What is in the store counts as all of them: the share is rather too large, by what is not uploaded yet.
        """
        shares = [size / max(1, self.remote.get(partition, 0)) for (partition, _b), size in self.replicas.items()]
        return max(shares, default=float("inf"))

    def __str__(self) -> str:
        if not self.replicas:
            return "no broker has a replica of it"
        (partition, broker), size = max(
            self.replicas.items(), key=lambda item: item[1] / max(1, self.remote.get(item[0][0], 0))
        )
        return (
            f"partition {partition} has {size:,} bytes on broker {broker} and {self.remote.get(partition, 0):,} in the "
            f"store ({len(self.replicas)} replicas, {sum(self.replicas.values()):,} bytes on brokers)"
        )


def local(admin: Admin, remote: RemoteLog, topic: str) -> Local:
    """Look once."""
    brokers = sorted({broker for state in admin.partitions([topic]).values() for broker in state.replicas})
    logs = admin.log_dirs(brokers, [topic])
    sizes = {(tp.partition, broker): log.size_bytes for broker, found in logs.items() for tp, log in found.items()}
    return Local(sizes, remote.copied_bytes(topic))


def wait_local(
    admin: Admin, remote: RemoteLog, topic: str, *, share: float = LOCAL_SHARE, timeout_s: float = 60.0
) -> Local:
    """Wait until less than `share` of every replica is on its broker. Raises `WaitTimeout` with what was seen."""
    return wait_for(
        lambda: local(admin, remote, topic),
        lambda seen: seen.share < share,
        timeout_s,
        0.3,
        f"the local log of every replica of {topic} to be under {share:.0%} of the whole",
    )
