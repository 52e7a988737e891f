"""The SSH account of a testbed's host in ducktape."""

from dataclasses import dataclass

import paramiko

from ducktests.framework import Account, ssh_config
from testbed.provision import state as states
from testbed.provision.testbed import Testbed
from testbed.runner.cluster_file import require_here

_USER = "root"


@dataclass(frozen=True, slots=True)
class Reach:
    """The address and keys of a host; `host_key` is its pinned public key, `ssh-ed25519 AAAA…`."""

    name: str
    address: str
    data_address: str
    key_file: str
    host_key: str


def reach(testbed: Testbed, host: str) -> Reach:
    """Return the address and keys of `host`. Raise `TestbedError` for hosts on other machines."""
    require_here(testbed)
    return Reach(
        host,
        str(testbed.plan.management_ip(host)),
        str(testbed.plan.data_ip(host)),
        str(states.private_key_path(testbed.name)),
        testbed.state.host_keys[host],
    )


class TestbedAccount(Account):
    """ducktape's account, but it rejects a host key that is not the pinned one, and `available` checks the host.

    ducktape's own account accepts any host key, and considers every host available without a check.
    """

    __test__ = False

    def __init__(self, where: Reach, topology: str) -> None:
        super().__init__(
            ssh_config(where.name, where.address, _USER, where.key_file),
            externally_routable_ip=where.data_address,
            node_type=topology,
            # ducktape's default, a list, makes an account that cannot be hashed.
            ssh_exception_checks=None,
        )
        self.where = where

    def _set_ssh_client(self) -> None:
        kind, blob = self.where.host_key.split()[:2]
        entry = paramiko.hostkeys.HostKeyEntry.from_line(f"{self.where.address} {kind} {blob}")
        if entry is None or entry.key is None:
            raise ValueError(f"{self.where.name}: the pinned host key is not a key: {self.where.host_key!r}")
        client = paramiko.SSHClient()
        client.get_host_keys().add(self.where.address, kind, entry.key)
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        client.connect(
            self.where.address,
            username=_USER,
            key_filename=self.where.key_file,
            allow_agent=False,
            look_for_keys=False,
            timeout=10.0,
        )
        if self._ssh_client is not None:
            self._ssh_client.close()
        self._ssh_client = client
        self.set_sftp_client()

    def available(self) -> bool:
        """Return whether a command runs on the host."""
        try:
            return bool(self.ssh("true", allow_fail=True) == 0)
        except (OSError, paramiko.SSHException):
            return False
