"""The labels on everything a testbed makes: what `ls`, `down` and `gc` find things by."""

from dataclasses import dataclass

from testbed.owner import Owner

NAME = "testbed.name"
ROLE = "testbed.role"
HOST = "testbed.host"
SLOT = "testbed.slot"
OWNER = "testbed.owner"
STATE = "testbed.state"


@dataclass(frozen=True, slots=True)
class Labels:
    """What all resources of one testbed have in common."""

    name: str
    slot: int
    owner: Owner
    state_dir: str

    def of(self, role: str, host: str = "") -> dict[str, str]:
        """The labels of one resource; roles: host, fabric, management."""
        labels = {
            NAME: self.name,
            ROLE: role,
            SLOT: str(self.slot),
            OWNER: str(self.owner),
            STATE: self.state_dir,
        }
        return {**labels, HOST: host} if host else labels
