"""What hosts without the testbed's Kafka get instead: another image, folders of this machine, and logins."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.software.image import ImageRef


@dataclass(frozen=True, slots=True)
class Equipment:
    """The software of hosts that are all clients. The testbed gives it to every host, and starts none of it."""

    image: ImageRef
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Path on the machine → path in the container, read-only."""
    users: tuple[str, ...] = ()
    """The image's users, besides root, that log in with the testbed's key."""
    capabilities: tuple[str, ...] = ()
    """Linux capabilities besides the engine's usual ones, such as NET_ADMIN."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of every login."""
