"""Errors of an object store by operation: a proxy on its host, to which the host's kernel redirects new connections.

MinIO itself is not changed. Its credentials and the clients' signatures pass as they are.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from testbed.errors import TestbedError
from testbed.faults.processes import start
from testbed.hosts import Daemon
from testbed.network.namespaces import run_program_as_root
from testbed.objectstore.server import PORT
from testbed.provision.testbed import Testbed

PROXY_PORT = 9001
PROGRAM, RULES = "/opt/testbed/store_proxy.py", "/run/store-errors.json"
_PID, _LOG = "/run/store-proxy.pid", "/var/log/minio/store-proxy.log"
_TO_MINIO = ("-p", "tcp", "--dport", str(PORT), "-m", "comment", "--comment", "testbed-store-errors")
# What arrives for MinIO goes to the proxy. A connection from before is reset, so that its client connects again.
CHAINS: Mapping[str, tuple[str, ...]] = {
    "-t nat PREROUTING": (*_TO_MINIO, "-j", "REDIRECT", "--to-ports", str(PROXY_PORT)),
    "-t filter INPUT": ("!", "-i", "lo", *_TO_MINIO, "-j", "REJECT", "--reject-with", "tcp-reset"),
}
NO_SUCH_RULE = ("does a matching rule exist in that chain", "No chain/target/match by that name")
"""What iptables answers about a rule that is not there; the second on the tables before nf_tables."""
Rule = Mapping[str, Any]


def no_redirect() -> str:
    """Return why this machine cannot redirect connections; empty when it can."""
    if shutil.which("iptables", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return "iptables is not installed; `apt-get install iptables`"
    return ""


def settle(testbed: Testbed, host: str, rules: Sequence[Rule]) -> None:
    """Make a server's host answer by these rules; without any, remove proxy and redirection."""
    shell, proxy = testbed.hosts[host], _proxy(testbed, host)
    if rules:
        shell.put((resources.files("testbed.faults.programs") / "store_proxy.py").read_bytes(), PROGRAM)
        shell.put(json.dumps(list(rules)).encode(), RULES)
        start(proxy)
    redirect(testbed, host, wanted=bool(rules))
    if not rules:
        proxy.kill()
        shell.run(["rm", "-f", RULES])


def redirect(testbed: Testbed, host: str, *, wanted: bool) -> None:
    """Add or remove the redirection in the host's network namespace."""
    pid = testbed.pids()[1][host]
    for chain, rule in CHAINS.items():
        if redirected(pid, chain, rule) != wanted:
            _iptables(pid, "-A" if wanted else "-D", chain, rule)


def redirected(pid: int, chain: str, rule: Sequence[str]) -> bool:
    """Return whether a rule is in force in the network namespace of a process. Raise `TestbedError` if unknown."""
    try:
        _iptables(pid, "-C", chain, rule)
    except TestbedError as error:
        if any(answer in str(error) for answer in NO_SUCH_RULE):
            return False
        raise
    return True


def missing(testbed: Testbed, host: str) -> str:
    """Return the part of proxy and redirection that is not there; empty when all is."""
    pid = testbed.pids()[1][host]
    found = [chain for chain, rule in CHAINS.items() if not redirected(pid, chain, rule)]
    if found:
        return f"{host} has no rule in {' and '.join(found)}"
    return "" if _proxy(testbed, host).pid() else f"the proxy on {host} does not run"


def _proxy(testbed: Testbed, host: str) -> Daemon:
    command = ["python3", PROGRAM, str(PROXY_PORT), str(PORT), RULES]
    return Daemon(testbed.hosts[host], "proxy", command, pid_file=_PID, log=_LOG)


def _iptables(pid: int, action: str, chain: str, rule: Sequence[str]) -> None:
    table, name = chain.rsplit(" ", 1)
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", "iptables", "-w", "5"]
    run_program_as_root([*command, *table.split(), action, name, *rule])
