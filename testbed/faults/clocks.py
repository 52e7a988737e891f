"""Skewed clocks of Kafka: libfaketime, preloaded into its process, adds an offset to the wall clock.

Linux has no namespace for the wall clock. So only Kafka's process sees another time, from its start on. Its monotonic
clock, which timeouts use, is the machine's.
"""

import shutil
import tempfile
from pathlib import Path

from results.contract import durable
from testbed.errors import TestbedError
from testbed.paths import cache_dir, state_dir
from testbed.provision.testbed import Testbed
from testbed.software.commands import run_logged

PACKAGE, LIBRARY = "libfaketime", "libfaketimeMT.so.1"
PATH = f"/opt/testbed/{LIBRARY}"


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


def no_library() -> str:
    """Return why this machine cannot have the library; empty when it is in the cache, or apt can fetch it."""
    if _cached().exists() or shutil.which("apt-get", path="/usr/bin:/bin"):
        return ""
    return f"there is no {_cached()}, and no apt-get to fetch Debian's package {PACKAGE}"


def library() -> bytes:
    """Return the library, fetched once as a Debian package, which apt verifies. Raise `TestbedError` on failure."""
    cached = _cached()
    if not cached.exists():
        durable.make_folder(cached.parent)
        with tempfile.TemporaryDirectory(dir=cached.parent) as folder:
            script = f'cd "$1" && apt-get -q download {PACKAGE} && dpkg -x *.deb .'
            # With the user's environment: a proxy may be named there alone.
            run_logged(["sh", "-c", script, "fetch", folder], state_dir() / "logs" / "faketime.log")
            found = sorted(Path(folder).rglob(LIBRARY))
            if not found:
                raise TestbedError(f"Debian's package {PACKAGE} has no {LIBRARY}")
            durable.write(cached, found[0].read_bytes())
    return cached.read_bytes()


def _cached() -> Path:
    return cache_dir() / "faketime" / LIBRARY
