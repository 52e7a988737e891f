"""What a container engine says of itself: its kind and version, its control groups, addresses and features. Pure.

The answers of `/version` and `/info` differ between Docker and Podman, and between their releases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OLDEST: Mapping[str, tuple[int, ...]] = {"Docker": (20, 10), "Podman": (4, 3)}
"""The oldest release of each engine on which a testbed was brought up."""
ARCHITECTURES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "aarch64"}
"""Go's name of an architecture → the kernel's."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The facts of one engine that decide whether testbeds work on it."""

    kind: str
    version: str
    rootless: bool
    desktop: bool
    """Whether it runs in a virtual machine of its own: Docker Desktop."""
    selinux: bool
    cgroup_version: str
    architecture: str
    """As the kernel names it: x86_64, aarch64."""
    pools: tuple[str, ...]
    """The address pools of networks without declared addresses; empty where the engine does not say."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return the reasons why testbeds cannot work on this engine, each with its remedy."""
        found = []
        numbers = tuple(int(part) for part in self.version.split("+")[0].split("-")[0].split(".")[:2] if part.isdigit())
        oldest = OLDEST.get(self.kind)
        if oldest is not None and numbers < oldest:
            found.append(f"a release from {'.'.join(map(str, oldest))} on is missing: install a newer {self.kind}")
        if self.rootless:
            found.append(
                "root is missing, so it cannot link hosts to this machine: use the engine of the system "
                f"({_system_socket(self.kind)})"
            )
        if self.desktop:
            found.append(
                "this machine's network is missing, since it runs in a virtual machine of its own: "
                "install an engine in this Linux, and unset DOCKER_HOST or name its socket there"
            )
        return tuple(found)


def facts(version: Mapping[str, Any], info: Mapping[str, Any]) -> EngineFacts:
    """Return the facts in the engine's answers to `/version` and `/info`."""
    components = [str(each.get("Name", "")) for each in version.get("Components") or []]
    podman = any(name.startswith("Podman") for name in components)
    options: Sequence[str] = info.get("SecurityOptions") or []
    return EngineFacts(
        kind="Podman" if podman else "Docker",
        version=str(version.get("Version", "")),
        rootless=any("name=rootless" in each for each in options),
        desktop="Docker Desktop" in str(info.get("OperatingSystem", "")),
        selinux=any("name=selinux" in each for each in options),
        cgroup_version=str(info.get("CgroupVersion", "")),
        architecture=kernel_name(str(info.get("Architecture", ""))),
        pools=tuple(f"{each['Base']} by /{each['Size']}" for each in info.get("DefaultAddressPools") or []),
    )


def kernel_name(architecture: str) -> str:
    """Return the kernel's name of an architecture, for Go's name or its own."""
    return ARCHITECTURES.get(architecture, architecture)


def _system_socket(kind: str) -> str:
    return {
        "Podman": "sudo systemctl start podman.socket; DOCKER_HOST=unix:///run/podman/podman.sock",
        "Docker": "DOCKER_HOST=unix:///var/run/docker.sock",
    }.get(kind, "its socket in DOCKER_HOST")
