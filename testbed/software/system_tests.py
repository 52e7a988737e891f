"""The software of Apache's system tests: an image of their hosts, and the jars of each release.

The image has the node image's packages, a JDK, and the programs that the tests call. The jars are all of a release's
modules, Trogdor, and the core's tests, fetched through Maven. A release's tarball has the same modules in its `libs`.
"""

import re
from pathlib import Path

from testbed.errors import SoftwareError
from testbed.software.cache import artefact
from testbed.software.image import OPTIONS, PACKAGES, ImageRecipe
from testbed.software.maven import Coordinates, NotInRegistry, copy_jars, known_versions
from testbed.software.release import missing_binding

USER = "ducker"
"""The user as which the tests log in: the name that Kafka's own Docker image gives it."""
_PACKAGES = (
    "iperf",
    "iptables",
    "iputils-ping",
    "less",
    "lsof",
    "net-tools",
    "netcat-openbsd",
    "openjdk-17-jdk-headless",
    "openssl",
    "procps",
    "psmisc",
    "rsync",
    "sudo",
    "traceroute",
    "unzip",
)
_HOOKS = (
    # No password, yet not locked: sshd without PAM refuses a locked account's keys, too.
    f"--customize-hook=chroot \"$1\" useradd --create-home --shell /bin/bash --password '*' {USER}",
    f'--customize-hook=echo "{USER} ALL=(ALL) NOPASSWD: ALL" > "$1"/etc/sudoers.d/{USER}',
    f'--customize-hook=chmod 0440 "$1"/etc/sudoers.d/{USER}',
    # Services write to /mnt, and some scripts to their own folder.
    f'--customize-hook=chroot "$1" chown {USER} /mnt /opt',
)
RECIPE = ImageRecipe(
    "testbed-system-test", tuple(sorted({*PACKAGES, *_PACKAGES} - {"openjdk-17-jre-headless"})), (*OPTIONS, *_HOOKS)
)


LAYOUT = "1"
GROUP = "org.apache.kafka"
MODULES = (
    "kafka-tools",
    "trogdor",
    "kafka-shell",
    "connect-runtime",
    "connect-file",
    "connect-mirror",
    "connect-basic-auth-extension",
)
LATER = {"trogdor": (3, 3, 0), "kafka-shell": (2, 8, 0), "connect-mirror": (2, 4, 0)}
"""Module → the first release that has it."""
OLDEST = (2, 4, 0)
"""The first release with a core for Scala 2.13."""
LIBS, TEST_LIBS = "libs", "test-libs"


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows them."""
    return tuple(int(number) for number in re.split(r"[-+]", version)[0].split("."))


def system_test_jars(version: str) -> Path:
    """Return a folder with a release's jars in `libs`, and the core's own tests in `test-libs`; fetch them when new.

    Raise SoftwareError when Maven has no such release, or one that is too old.
    """
    if numbers_of(version) < OLDEST:
        raise SoftwareError(f"Kafka {version} has no jars for Scala 2.13; allowed: 2.4.0 or newer")
    return artefact("kafka-system-test", f"{version}-{LAYOUT}", lambda folder: _fetch(version, folder))


def modules_of(version: str) -> tuple[Coordinates, ...]:
    """Return the modules that a release has. Pure."""
    there = [name for name in MODULES if numbers_of(version) >= LATER.get(name, OLDEST)]
    return tuple(Coordinates(GROUP, name, version) for name in ("kafka_2.13", *there))


def _fetch(version: str, folder: Path) -> None:
    libs, tests = folder / LIBS, folder / TEST_LIBS
    modules = modules_of(version)
    try:
        copy_jars(modules, libs)
        binding = missing_binding(tuple(path.name for path in libs.iterdir()))
        if binding is not None:
            copy_jars([*modules, binding], libs)
        copy_jars([Coordinates(GROUP, "kafka_2.13", version, "test")], tests, transitive=False)
    except NotInRegistry as error:
        exist = [each for each in known_versions(GROUP, "kafka_2.13") if re.fullmatch(r"[\d.]+", each)]
        newest = ", ".join(list(reversed(exist))[:12])
        existing = f"; it has, newest first: {newest}" if exist and version not in exist else ""
        raise SoftwareError(f"Maven's registry lacks jars of Kafka {version}: {error}{existing}") from error
