"""The folders under /opt where the system tests look for Kafka: one for the build under test, one for each release.

`bin` and `config` are copied to each host. The jars are mounted, and links lead to them. Pure.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

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
