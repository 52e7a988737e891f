"""The evidence of a failed test: the state of its testbed, as sections of pytest's report."""

from collections.abc import Callable
from functools import partial

from results.render import table
from testbed.api import UserTestbed
from testbed.errors import TestbedError
from testbed.faults import Faults
from testbed.provision.status import remarks, rows, status

LOG_LINES = 40
"""Lines of each server's log."""


def evidence(testbed: UserTestbed) -> list[tuple[str, str]]:
    """Return title and text of each section, after 20 s at most. What cannot be read is a section with the reason."""
    name = testbed.name
    sections = [(f"testbed {name}: status", _or_reason(lambda: _status(testbed)))]
    for host in testbed.hosts:
        sections.append((f"testbed {name}: NIC shaping of {host}", _or_reason(partial(_nics, testbed, host))))
        log = _or_reason(partial(_log, testbed, host))
        if log:
            sections.append((f"testbed {name}: log of {host}, last {LOG_LINES} lines", log))
    return sections


def _or_reason(read: Callable[[], str]) -> str:
    try:
        return read().rstrip()
    except TestbedError as error:
        return f"not readable: {error}"


def _status(testbed: UserTestbed) -> str:
    found = status(testbed, [entry.document() for entry in Faults(testbed).list()])
    header = ("HOST", "ROLE", "RACK", "NICS", "KAFKA", "RUNS", "SERVES")
    shaping = [] if found["shaping"] or found["problems"] else ["the kernel's shaping is the declared one"]
    bootstrap = f"bootstrap {','.join(found['bootstrap'])}"
    return "\n".join([table(header, rows(found)), *remarks(found), *shaping, bootstrap])


def _nics(testbed: UserTestbed, host: str) -> str:
    return testbed.hosts[host].run(["tc", "-s", "qdisc", "show"], timeout_s=10).stdout


def _log(testbed: UserTestbed, host: str) -> str:
    daemon = testbed.daemon(host)
    return daemon.log_tail(LOG_LINES) if daemon is not None else ""
