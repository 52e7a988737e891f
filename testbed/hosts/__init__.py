"""Hosts that run commands. `Host` is the same interface for a container and for a machine."""

from testbed.hosts.host import CommandFailed, CommandResult, Daemon, Host, Process, Shell
from testbed.hosts.ssh import SshHost

__all__ = ["CommandFailed", "CommandResult", "Daemon", "Host", "Process", "Shell", "SshHost"]
