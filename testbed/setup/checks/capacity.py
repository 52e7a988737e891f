"""Memory and disk."""

import shutil
from pathlib import Path

from testbed.paths import cache_dir
from testbed.setup.finding import Check, Finding
from testbed.software.engine import Engine, EngineError

GIB = 1024**3
MEMORY_BYTES = 4 * GIB
DISK_BYTES = 5 * GIB
MEMINFO = Path("/proc/meminfo")


class Memory(Check):
    """Brokers and Spark take some 3 GiB together."""

    name = "memory"
    needs = ("platform",)

    def probe(self) -> Finding:
        """Compare what is available with what is needed."""
        available = available_bytes(MEMINFO.read_text(encoding="ascii")) if MEMINFO.exists() else 0
        told = f"{available / GIB:.1f} GiB available"
        if available >= MEMORY_BYTES:
            return self.good(told)
        return self.bad(f"{told}, {MEMORY_BYTES / GIB:.0f} GiB needed", "end other programs, or use a larger machine")


class Disk(Check):
    """Image, jars, environment and the brokers' logs."""

    name = "disk"
    needs = ("platform",)

    def probe(self) -> Finding:
        """Compare what is free in the cache folder and in the engine's with what is needed."""
        free = {folder: shutil.disk_usage(_existing(folder)).free for folder in (cache_dir(), engine_folder())}
        short = [f"{folder}: {bytes_ / GIB:.1f} GiB free" for folder, bytes_ in free.items() if bytes_ < DISK_BYTES]
        if not short:
            return self.good(f"{min(free.values()) / GIB:.0f} GiB free")
        return self.bad(
            f"{'; '.join(short)}; {DISK_BYTES / GIB:.0f} GiB needed",
            "make room, or name a folder on a larger disk in XDG_CACHE_HOME",
        )


def available_bytes(meminfo: str) -> int:
    """MemAvailable of /proc/meminfo."""
    return next((int(line.split()[1]) * 1024 for line in meminfo.splitlines() if line.startswith("MemAvailable:")), 0)


def engine_folder() -> Path:
    """Where the engine keeps its containers."""
    try:
        return Path(str(Engine.from_environment().get("/info")["DockerRootDir"]))
    except EngineError:
        return Path("/var/lib/docker")


def _existing(folder: Path) -> Path:
    while not folder.is_dir():
        folder = folder.parent
    return folder
