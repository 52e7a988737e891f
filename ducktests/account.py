"""The SSH account of a testbed's host in ducktape."""

import paramiko

from ducktests.framework import Account, ssh_config
from testbed.provision import state as states
from testbed.provision.testbed import Testbed
from testbed.runner.cluster_file import require_here

_USER = "root"


class TestbedAccount(Account):
    """ducktape's account, but it rejects a host key that is not the pinned one, and `available` checks the host.

    ducktape's own account accepts any host key, and considers every host available without a check. Raise
    `TestbedError` for hosts on other machines.
    """

    __test__ = False

    def __init__(self, testbed: Testbed, host: str, topology: str) -> None:
        require_here(testbed)
        self._address = str(testbed.plan.management_ip(host))
        self._key_file = str(states.private_key_path(testbed.name))
        self._host_key = testbed.state.host_keys[host]
        super().__init__(
            ssh_config(host, self._address, _USER, self._key_file),
            externally_routable_ip=str(testbed.plan.data_ip(host)),
            node_type=topology,
            # ducktape's default, a list, makes an account that cannot be hashed.
            ssh_exception_checks=None,
        )

    def _set_ssh_client(self) -> None:
        kind, blob = self._host_key.split()[:2]
        entry = paramiko.hostkeys.HostKeyEntry.from_line(f"{self._address} {kind} {blob}")
        if entry is None or entry.key is None:
            raise ValueError(f"{self.hostname}: the pinned host key is not a key: {self._host_key!r}")
        client = paramiko.SSHClient()
        client.get_host_keys().add(self._address, kind, entry.key)
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        client.connect(
            self._address,
            username=_USER,
            key_filename=self._key_file,
            allow_agent=False,
            look_for_keys=False,
            timeout=10.0,
        )
        if self._ssh_client is not None:
            self._ssh_client.close()
        self._ssh_client = client
        self._set_sftp_client()

    def available(self) -> bool:
        """Return whether a command runs on the host."""
        try:
            return bool(self.ssh("true", allow_fail=True) == 0)
        except (OSError, paramiko.SSHException):
            return False
