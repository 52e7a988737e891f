"""Jars that the testbed builds from its own sources: a Maven project in this tree, and the digest of its sources."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.software.cache import digest_of, sha256_of
from testbed.software.maven import run_maven

BUILD_S = 600.0
JVM_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Maven and the JVM of its tests. Both end after seconds: the better code of C2 costs more than it saves."""


@dataclass(frozen=True, slots=True)
class MavenProject:
    """A folder with a `pom.xml` and `src/main`; `title` names its product in messages."""

    title: str
    sources: Path

    def digest(self) -> str:
        """Return the digest over all sources of the jar, without its tests."""
        files = [
            self.sources / "pom.xml",
            *sorted(p for p in (self.sources / "src" / "main").rglob("*") if p.is_file()),
        ]
        return digest_of((str(path.relative_to(self.sources)), sha256_of(path)) for path in files)

    def run(
        self, arguments: Sequence[str | Path], *, env: dict[str, str] | None = None, timeout_s: float = BUILD_S
    ) -> None:
        """Run Maven on a copy of the sources: the tree may be read-only and stays unchanged.

        Raise SoftwareError when Maven is missing or fails.
        """
        # The user's own flags replace these: a JVM does not start with two collectors.
        flags = {"MAVEN_OPTS": os.environ.get("MAVEN_OPTS") or JVM_FLAGS, **(env or {})}
        words = [f"-DargLine={JVM_FLAGS}", *arguments]
        with tempfile.TemporaryDirectory(prefix="testbed-maven-") as folder:
            project = Path(folder) / "java"
            shutil.copytree(self.sources, project, ignore=shutil.ignore_patterns("target"))
            run_maven(project / "pom.xml", words, purpose=f"builds {self.title}", env=flags, timeout_s=timeout_s)
