"""How the driver reaches a machine that exists: addresses and verified keys of the machine and of its jump host."""

from dataclasses import dataclass
from pathlib import Path

from testbed.hosts import SshHost
from testbed.hosts.host_keys import verified
from testbed.hosts.ssh import SshAddress
from testbed.topology.inventory import SshAccess

SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class VerifiedKeys:
    """The public keys of a machine and of its jump host (empty without one), which the user knows."""

    host: str
    jump: str = ""


def jump_of(access: SshAccess) -> tuple[str, str, int] | None:
    """Return user, host and port of the jump host; None without one. The user is the machine's unless given."""
    if access.jump is None:
        return None
    user, _, where = access.jump.rpartition("@")
    host, _, port = where.partition(":")
    return user or access.user, host, int(port or SSH_PORT)


def ssh_address(access: SshAccess, keys: VerifiedKeys) -> SshAddress:
    """Return the address of a machine, by way of its jump host."""
    key = None if access.key is None else Path(access.key)
    jump, found = None, jump_of(access)
    if found is not None:
        user, host, port = found
        jump = SshAddress(host, port, user, key, keys.jump)
    return SshAddress(access.address, access.port, access.user, key, keys.host, jump)


def verified_keys(name: str, access: SshAccess) -> VerifiedKeys:
    """Ask a machine and its jump host for their keys, and return them. Raise `UnknownHostKey` or `TestbedError`."""
    found = jump_of(access)
    if found is None:
        return VerifiedKeys(verified(access.address, access.port, access.host_key, access.known_hosts))
    user, host, port = found
    jump_key = verified(host, port, access.jump_host_key, access.known_hosts, field="jump_host_key")
    key = None if access.key is None else Path(access.key)
    jump = SshHost(f"{name}'s jump host", SshAddress(host, port, user, key, jump_key))
    try:
        host_key = verified(access.address, access.port, access.host_key, access.known_hosts, jump.tunnel)
        return VerifiedKeys(host_key, jump_key)
    finally:
        jump.close()
