"""Where a command runs: one `Host`, the same for a container and for a machine."""

from testbed.hosts.daemon import Daemon
from testbed.hosts.host import CommandFailed, Host, Process, Result, Shell
from testbed.hosts.ssh import SshHost

__all__ = ["CommandFailed", "Daemon", "Host", "Process", "Result", "Shell", "SshHost"]
