"""Access to a machine that exists: addresses and verified keys of the machine and of its jump host."""

import threading
from contextlib import closing
from dataclasses import dataclass, replace

from testbed.errors import TestbedError
from testbed.hosts import SshHost
from testbed.hosts.host_keys import SSH_PORT, verified
from testbed.hosts.ssh import SshAddress
from testbed.topology.inventory import SshAccess


@dataclass(frozen=True, slots=True)
class VerifiedKeys:
    """The public keys of a machine and of its jump host (empty without one), which the user knows."""

    host: str
    jump: str = ""


def jump_of(access: SshAccess, host_key: str = "") -> SshAddress | None:
    """Return the jump host's address with its public key; None without one. The user is the machine's unless given."""
    if access.jump is None:
        return None
    user, _, where = access.jump.rpartition("@")
    host, _, port = where.partition(":")
    return SshAddress(host, int(port or SSH_PORT), user or access.user, access.key, host_key)


def ssh_address(access: SshAccess, keys: VerifiedKeys) -> SshAddress:
    """Return the address of a machine, by way of its jump host."""
    jump = jump_of(access, keys.jump)
    return SshAddress(access.address, access.port, access.user, access.key, keys.host, jump)


class JumpKeys:
    """The keys of the jump hosts of a topology. Each jump host is asked once, whatever number of machines it leads to.

    An SSH server drops connections when many begin at once (OpenSSH: from 10 on).
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, str | None, str], str | TestbedError] = {}
        self._lock = threading.Lock()

    def of(self, jump: SshAddress, access: SshAccess) -> str:
        """Return the public key of a machine's jump host. Raise `TestbedError`."""
        server = (jump.host, jump.port, access.jump_host_key, access.known_hosts)
        with self._lock:
            if server not in self._found:
                try:
                    self._found[server] = verified(*server, field="jump_host_key")
                except TestbedError as error:
                    self._found[server] = error
            found = self._found[server]
        if isinstance(found, TestbedError):
            raise found
        return found


def verified_keys(name: str, access: SshAccess, jump_keys: JumpKeys) -> VerifiedKeys:
    """Ask a machine and its jump host for their keys, and return them. Raise `TestbedError`."""
    jump = jump_of(access)
    if jump is None:
        return VerifiedKeys(verified(access.address, access.port, access.host_key, access.known_hosts))
    jump_key = jump_keys.of(jump, access)
    with closing(SshHost(f"{name}'s jump host", replace(jump, host_key=jump_key))) as through:
        host_key = verified(access.address, access.port, access.host_key, access.known_hosts, through.tunnel)
        return VerifiedKeys(host_key, jump_key)
