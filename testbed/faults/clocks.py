"""Skewed clocks of Kafka: libfaketime, preloaded into its process, adds an offset to the wall clock."""

import shlex

from testbed.errors import TestbedError
from testbed.hosts import CommandFailed, Host
from testbed.provision.testbed import Testbed
from testbed.software.faketime import LIBRARY, library
from testbed.software.image import SUITE

PATH = f"/opt/testbed/{LIBRARY}"
_DATE = ("date", "+%s.%N")


def variables(offset_us: int) -> list[str]:
    """Return the words before a command whose wall clock is offset. Pure."""
    offset = f"{offset_us / 1e6:+f}s"
    return [
        "env",
        f"LD_PRELOAD={PATH}",
        f"FAKETIME={offset}",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "FAKETIME_FORCE_MONOTONIC_FIX=0",
        "NO_FAKE_STAT=1",
    ]


def loaded(testbed: Testbed, host: str) -> int | None:
    """Return the offset of Kafka's process from the kernel, in µs; 0 without one, None without a process."""
    pid = testbed.node(host).pid()
    if pid is None:
        return None
    run = testbed.hosts[host].run
    if run(f"grep -q {LIBRARY} /proc/{pid}/maps", check=False).exit_status:
        return 0
    found = run(f"tr '\\0' '\\n' < /proc/{pid}/environ | sed -n 's/^FAKETIME=//p'").stdout.strip()
    return round(float(found.removesuffix("s")) * 1e6) if found else 0


def not_skewed(host: Host, offset_us: int) -> str:
    """Return how the clock of a program with the library is not offset by this; empty when it is.

    Raise `CommandFailed` when the library ends the program.
    """
    skewed_date = shlex.join([*variables(offset_us), *_DATE])
    plain_date = shlex.join(_DATE)
    read = host.run(f"{plain_date} && {skewed_date} && {plain_date}").stdout.split()
    before, skewed, after = map(float, read)
    return "" if before <= skewed - offset_us / 1e6 <= after else f"its clock is off by {skewed - before:.1f} s"


def put_library(host: Host, offset_us: int) -> None:
    """Put the library on a host, where it does nothing yet. Raise `TestbedError` when programs there cannot use it."""
    host.put(library().read_bytes(), PATH)
    try:
        why = not_skewed(host, offset_us)
    except CommandFailed as error:
        why = (error.result.stderr.strip().splitlines() or [str(error)])[-1]
    if why:
        raise TestbedError(
            f"a program on {host.name} cannot use {LIBRARY} of Debian {SUITE} ({why}): clock-skew needs a host with "
            "the C library of that release or a newer one, and with this machine's architecture"
        )
