"""The Kafkas under /opt of the system tests' hosts: scripts are copied to each host, jars are mounted and linked."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import SoftwareError, UsageError
from testbed.kafkatest.checkout import KafkaCheckout
from testbed.software.kafka import kafka_release
from testbed.software.source import VERSION
from testbed.software.system_tests import LIBS, system_test_jars

DEV = "dev"
ROOT = "/opt"
JARS = "/opt/testbed-jars"
"""Where a host sees the folders of jars, one for each version."""
_DEV_FOLDERS = {
    "libs": "libs",
    # Where tests look for single jars of a build: kafkatest/directory_layout/kafka_path.py.
    "core/build/libs": "test-libs",
    "core/build/dependant-testlibs": "libs",
    "tools/build/libs": "libs",
    "tools/build/dependant-libs": "libs",
    "connect/file/build/libs": "libs",
}


@dataclass(frozen=True, slots=True)
class KafkaHome:
    """One Kafka on every host: `name` is `dev` or a release, `jars` the folder of this machine with its jars."""

    name: str
    version: str
    jars: str
    scripts: bytes
    """A tar of `bin` and `config`."""
    scripts_of: str
    """Where the scripts come from, in words."""

    @property
    def folder(self) -> str:
        """Return its folder on a host."""
        return f"{ROOT}/kafka-{self.name}"

    @property
    def mounted(self) -> str:
        """Return where a host sees its jars."""
        return f"{JARS}/{self.name}"

    @property
    def links(self) -> Mapping[str, str]:
        """Return path on a host → the folder of jars that it leads to."""
        wanted = _DEV_FOLDERS if self.name == DEV else {"libs": "libs"}
        return {f"{self.folder}/{path}": f"{self.mounted}/{target}" for path, target in wanted.items()}

    def install(self, user: str) -> str:
        """Return the shell command that makes the folder on a host; it reads the scripts from standard input."""
        folder = shlex.quote(self.folder)
        steps = [f"rm -rf {folder}", f"mkdir -p {folder}", f"tar -x --no-same-owner -f - -C {folder}"]
        for path, target in self.links.items():
            parent = path.rpartition("/")[0]
            steps += [f"mkdir -p {shlex.quote(parent)}", f"ln -s {shlex.quote(target)} {shlex.quote(path)}"]
        steps += [f"chmod -R a+rX {folder}", f"chmod a+x {folder}/bin/*.sh", f"chown -hR {shlex.quote(user)} {folder}"]
        return " && ".join(steps)


def source_of(checkout: KafkaCheckout, wanted: str | None) -> str:
    """Return the build: the wanted one, the checkout's own jars or its release. Raise `UsageError` without one."""
    if wanted:
        return wanted
    if checkout.built:
        return str(checkout.folder)
    if checkout.release:
        return checkout.release
    raise UsageError(
        f"{checkout.folder} is {checkout.version}, which is no release, and has no jars; "
        "build it with `./gradlew systemTestLibs`, or name a release or a build with --kafka"
    )


def build_under_test(checkout: KafkaCheckout, source: str) -> KafkaHome:
    """Return the Kafka at /opt/kafka-dev. Raise `SoftwareError` when it is not available."""
    if Path(source).exists() or not VERSION.fullmatch(source):
        release = kafka_release(source)
        return KafkaHome(DEV, release.version, str(release.folder), checkout.scripts(), "the checkout")
    return KafkaHome(DEV, source, str(system_test_jars(source)), *checkout.scripts_for(source))


def earlier_releases(
    checkout: KafkaCheckout, releases: Iterable[str], progress: Callable[[str], None]
) -> tuple[list[KafkaHome], dict[str, str]]:
    """Return the Kafkas of these releases, and release → why it is not available."""
    homes, missing = [], {}
    for release in releases:
        try:
            progress(f"Kafka {release}, which a test names")
            homes.append(KafkaHome(release, release, str(system_test_jars(release)), *checkout.scripts_for(release)))
        except SoftwareError as error:
            missing[release] = str(error).splitlines()[0]
    return homes, missing


def jar_names(home: KafkaHome) -> list[str]:
    """Return the names of a Kafka's jars."""
    return sorted(path.name for path in (Path(home.jars) / LIBS).glob("*.jar"))
