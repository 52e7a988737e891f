"""The object store's server, for who wants one (`--with minio`): Go to build it with, and the binary itself."""

import re
import subprocess

from testbed.setup.debian import has_apt, install, which
from testbed.setup.finding import CannotFix, Check, Finding
from testbed.software.minio import BUILD_S, GO, cached_minio, go_version, minio

PACKAGE = "golang-go"
_NEEDED = ".".join(map(str, GO))


class Go(Check):
    """What the server is built with, where no registry has its image."""

    name = "go"
    needs = ("packages",)
    fixable = True
    doing = "installing Go"
    estimate_s = 30.0

    def probe(self) -> Finding:
        """Whether there is one that is new enough; none is needed where the binary is there."""
        found = go_version()
        if found is not None and found >= GO:
            return self.good(f"Go {'.'.join(map(str, found))}")
        if cached_minio() is not None:
            return self.good("not needed: the server is built")
        what = "no Go" if found is None else f"Go {'.'.join(map(str, found))} is too old"
        return self.bad(f"{what}; {_NEEDED} or newer builds the object store's server", required=False)

    def fix(self) -> None:
        """Install the distribution's, if that is new enough."""
        offered = _offered() if has_apt() else None
        if offered is None or offered < GO:
            there = "has none" if offered is None else f"has {'.'.join(map(str, offered))}"
            raise CannotFix(f"the distribution {there}: install Go {_NEEDED} or newer by hand, so that `go` is on PATH")
        install((PACKAGE,))


class MinioServer(Check):
    """The server's binary."""

    name = "object store"
    needs = ("go", "container engine", "disk")
    fixable = True
    doing = "building the object store's server"
    estimate_s = BUILD_S

    def probe(self) -> Finding:
        """Whether it is cached."""
        found = cached_minio()
        if found is None:
            return self.bad("its server, MinIO, is not built yet", "./run testbed doctor --fix --with minio")
        return self.good(f"MinIO {found.version}")

    def fix(self) -> None:
        """Take it from its image, or build it."""
        minio()


def _offered() -> tuple[int, ...] | None:
    """The version of Go that the distribution's package would bring."""
    policy = which("apt-cache") or "apt-cache"
    said = subprocess.run([policy, "policy", PACKAGE], capture_output=True, text=True, check=False).stdout
    return parse_offered(said)


def parse_offered(policy: str) -> tuple[int, ...] | None:
    """Of what `apt-cache policy golang-go` prints (`Candidate: 2:1.24~2`): (1, 24)."""
    found = re.search(r"Candidate: (?:\d+:)?(\d+)\.(\d+)", policy)
    return (int(found[1]), int(found[2])) if found else None
