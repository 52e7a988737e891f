"""A small Linux of its own: Debian's cloud kernel in an emulator (no KVM), with this machine's tools in its memory.

For what this machine's kernel may lack. Kernel and busybox are fetched once as Debian packages, verified by apt,
unpacked into the cache and never installed.
"""

import gzip
import io
import lzma
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from results.contract import durable
from testbed.paths import cache_dir
from testbed.setup.install import install
from testbed.software.distribution import which

KERNEL = "linux-image-cloud-amd64"
PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "ping": "iputils-ping",
    "bash": "bash",
    "mkfs.ext4": "e2fsprogs",
}
MACHINE = [
    "qemu-system-x86_64",
    "-accel",
    "tcg",
    "-cpu",
    "max",
    "-m",
    "512",
    "-nographic",
    "-no-reboot",
    "-nic",
    "none",
]
KERNEL_LINE = "console=ttyS0 quiet panic=-1 rdinit=/init"
INIT = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmpfs /run
mkdir -p /var /tmp; ln -s /run /var/run
for module in $(cat /modules/order); do insmod /modules/$module || echo "MISSING $module"; done
echo "=== begin"
sh /script 2>&1
echo "=== end"
sync; poweroff -f
"""


class Guest:
    """What is needed to boot; `run` boots it for one script."""

    def __init__(self, folder: Path, emulator: str) -> None:
        self._emulator = emulator
        (self._kernel,) = folder.glob("boot/vmlinuz-*")
        (self._modules,) = folder.glob("lib/modules/*")
        self._busybox = folder / "bin" / "busybox"

    @classmethod
    def fetched(cls) -> "Guest":
        """The guest, its packages fetched when the cache does not have them."""
        missing = [package for program, package in PROGRAMS.items() if which(program) is None]
        missing += ["qemu-system-x86"] if which("qemu-system-x86_64") is None else []
        if missing:
            install(tuple(dict.fromkeys(missing)))
        folder = cache_dir() / "guest"
        with durable.lock(cache_dir() / ".guest.lock"):
            if not (folder / "complete").exists():
                _fetch(folder)
        return cls(folder, which("qemu-system-x86_64") or "qemu-system-x86_64")

    def run(self, script: str, *, modules: Iterable[str], timeout_s: float) -> str:
        """What `script` printed in the guest; its kernel has `modules` and what they depend on."""
        files: dict[str, tuple[int, bytes]] = {
            "init": (0o755, INIT.encode()),
            "script": (0o644, (_own_programs() + script).encode()),
            "bin/busybox": (0o755, self._busybox.read_bytes()),
        }
        for program in PROGRAMS:
            files |= _with_libraries(which(program) or program)
        order = self._ordered(modules)
        files |= {f"modules/{path.name}": (0o644, _plain(path)) for path in order}
        files["modules/order"] = (0o644, "".join(f"{path.name}\n" for path in order).encode())
        with tempfile.NamedTemporaryFile(prefix="guest-", suffix=".cpio.gz") as memory:
            memory.write(gzip.compress(archive(files), 1))
            memory.flush()
            done = subprocess.run(
                [*MACHINE, "-kernel", str(self._kernel), "-initrd", memory.name, "-append", KERNEL_LINE],
                executable=self._emulator,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=timeout_s,
                check=False,
                errors="replace",
            )
        console = done.stdout.replace("\r", "")
        found = re.search(r"=== begin\n(.*)^=== end$", console, re.DOTALL | re.MULTILINE)
        assert found is not None, f"the guest did not come to its end:\n{console[-3000:]}\n{done.stderr[-1000:]}"
        assert "MISSING" not in console, console[-3000:]
        return found[1]

    def _ordered(self, names: Iterable[str]) -> list[Path]:
        """The modules' files, each after those it depends on, as the modules themselves say."""
        found: dict[str, Path] = {}

        def add(name: str) -> None:
            if name in found:
                return
            (path,) = self._modules.rglob(f"{name}.ko*")
            depends = re.search(rb"\0depends=([^\0]*)\0", b"\0" + _plain(path))
            for other in depends[1].decode().split(",") if depends and depends[1] else []:
                add(other.replace("_", "[-_]"))
            found[name] = path

        for name in names:
            add(name)
        return list(found.values())


def _fetch(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    debs = folder / "debs"
    debs.mkdir(parents=True)
    depends = subprocess.run(["apt-cache", "depends", KERNEL], capture_output=True, text=True, check=True).stdout
    image = re.search(r"Depends: (linux-image-\S+)", depends)
    assert image is not None, depends
    subprocess.run(["apt-get", "-q", "download", image[1], "busybox-static"], cwd=debs, capture_output=True, check=True)
    for deb in debs.iterdir():
        subprocess.run(["dpkg", "-x", str(deb), str(folder)], check=True)
    shutil.rmtree(debs)
    (folder / "complete").touch()


def _own_programs() -> str:
    """Busybox's shell would take its own program of the same name first."""
    return "".join(f'{name}() {{ /sbin/{name} "$@"; }}\n' for name in PROGRAMS if name.isalpha())


def _plain(module: Path) -> bytes:
    return lzma.decompress(module.read_bytes()) if module.suffix == ".xz" else module.read_bytes()


def _with_libraries(program: str) -> dict[str, tuple[int, bytes]]:
    """A program and the libraries that the loader would give it here, at the same paths."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = [Path(program), *map(Path, re.findall(r"(/\S+) \(0x", told))]
    found = {str(path).lstrip("/"): (0o755, path.read_bytes()) for path in paths}
    return {**found, f"sbin/{Path(program).name}": (0o755, Path(program).read_bytes())}


def archive(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """A cpio archive (newc) of path → mode and content, with the folders they lie in."""
    entries: dict[str, tuple[int, bytes]] = {}
    for path, (mode, content) in files.items():
        for parent in reversed(Path(path).parents[:-1]):
            entries.setdefault(str(parent), (stat.S_IFDIR | 0o755, b""))
        entries[path] = (stat.S_IFREG | mode, content)
    for folder in ("proc", "sys", "dev", "run"):
        entries.setdefault(folder, (stat.S_IFDIR | 0o755, b""))
    out = io.BytesIO()
    for number, (path, (mode, content)) in enumerate([*entries.items(), ("TRAILER!!!", (0, b""))], 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        out.write(b"\0" * (-out.tell() % 4) + content)
        out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()
