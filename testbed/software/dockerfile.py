"""A Dockerfile of an image's recipe, from the packages and options with which mmdebstrap makes the same image."""

import io
import shlex
import tarfile
from collections.abc import Sequence

from testbed.software.apt import credentials, fetch_settings

SETTINGS = "/etc/dpkg/dpkg.cfg.d/testbed"
OWN_APT = "/tmp/apt"
"""The folder with the machine's settings of apt while the image is built."""
_IGNORED = ("--variant=",)
"""Options that the base image stands for."""


def dockerfile(
    base: str, packages: Sequence[str], options: Sequence[str], changes: Sequence[str], *, own_apt: bool = False
) -> str:
    """Return a Dockerfile that installs `packages` on `base`, with mmdebstrap's `options`. Pure.

    With `own_apt` the folder `apt` of the build's context has the machine's settings of apt, which leave again.
    Raise ValueError for an option that has no equivalent.
    """
    apt, dpkg = ["-q", "-y"], []
    before, after = [], []
    for option in options:
        name, _, value = option.partition("=")
        if name == "--aptopt":
            apt += ["-o", value.replace(" ", "=", 1)]
        elif name == "--dpkgopt":
            dpkg.append(value)
        elif name == "--setup-hook":
            before.append(value)
        elif name == "--customize-hook":
            after.append(value)
        elif not option.startswith(_IGNORED):
            raise ValueError(f"a Dockerfile has no equivalent of mmdebstrap's option {option}")
    if own_apt:
        parts = (f"SourceList={OWN_APT}/sources.list", "SourceParts=/dev/null", f"NetRC={OWN_APT}/auth.conf")
        apt += [word for part in parts for word in ("-o", f"Dir::Etc::{part}")]
    get = f"apt-get {shlex.join(apt)}"
    steps = [
        # A hook gets the image's root as its first argument.
        "set -e -- /",
        "export DEBIAN_FRONTEND=noninteractive" + (f" APT_CONFIG={OWN_APT}/apt.conf" if own_apt else ""),
        f"printf '%s\\n' {shlex.join(dpkg)} > {SETTINGS}",
        *before,
        f"{get} update",
        f"{get} upgrade",
        f"{get} install --no-install-recommends {' '.join(packages)}",
        "apt-get clean",
        *after,
        f"rm -rf /var/lib/apt/lists/* {SETTINGS} {OWN_APT}",
    ]
    copy = [f"COPY apt {OWN_APT}"] if own_apt else []
    return "\n".join([f"FROM {base}", *copy, "RUN " + "; \\\n    ".join(steps), *changes, ""])


def build_context(text: str, sources: Sequence[str]) -> bytes:
    """Return the tar that an engine builds from: the Dockerfile `text`, and the machine's apt when it has `sources`."""
    files = {"Dockerfile": text}
    if sources:
        files |= {
            "apt/sources.list": "".join(f"{line}\n" for line in sources),
            "apt/apt.conf": fetch_settings(),
            "apt/auth.conf": credentials(),
        }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return buffer.getvalue()
