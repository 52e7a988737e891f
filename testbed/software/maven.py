"""Jars from the user's Maven, with its settings, mirrors and local repository: fetched, or built from this tree."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from results.contract import durable
from testbed.errors import SoftwareError
from testbed.paths import cache_dir, state_dir
from testbed.software.cache import artefact, digest_of, sha256_of
from testbed.software.commands import CommandError, run_logged
from testbed.software.distribution import this_distribution

# By its full name, so that the version is always the same, and Maven reports why it is unavailable.
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"


@dataclass(frozen=True, slots=True)
class Coordinates:
    """One artifact in Maven's terms."""

    group: str
    name: str
    version: str
    classifier: str = ""

    def __str__(self) -> str:
        return ":".join(part for part in (self.group, self.name, self.classifier, self.version) if part)


class NotInRegistry(SoftwareError):
    """Maven reports that an artifact does not exist."""


def pom(dependencies: Sequence[Coordinates]) -> str:
    """Return a project file that requests `dependencies` and nothing else."""
    wanted = "\n".join(
        f"<dependency><groupId>{escape(d.group)}</groupId><artifactId>{escape(d.name)}</artifactId>"
        f"<version>{escape(d.version)}</version>"
        + (f"<classifier>{escape(d.classifier)}</classifier>" if d.classifier else "")
        + "</dependency>"
        for d in dependencies
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>testbed</groupId><artifactId>jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{wanted}\n</dependencies></project>\n"
    )


def run_maven(
    project: Path,
    arguments: Sequence[str | Path],
    *,
    purpose: str,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> None:
    """Run Maven on a project file; wait while another process does. `purpose` completes "mvn, which …" in messages.

    Raise NotInRegistry when Maven reports that an artifact does not exist, CommandError for any other failure.
    """
    if shutil.which("mvn") is None:
        raise CommandError(f"mvn, which {purpose}, is not installed: {this_distribution().how_to_get('mvn')}")
    words = ["mvn", "-B", "-q", "-Dstyle.color=never", "-f", project, *arguments]
    # Maven's local repository does not support two writers at once.
    with durable.lock(cache_dir() / ".maven.lock"):
        try:
            run_logged(words, state_dir() / "logs" / "maven.log", env=env, timeout_s=timeout_s)
        except CommandError as error:
            missing = missing_artifacts(error.output)
            if missing:
                raise NotInRegistry(f"Maven finds no {', '.join(missing)}") from error
            raise


@contextmanager
def _project(dependencies: Sequence[Coordinates]) -> Iterator[Path]:
    """Yield the path of a project file that requests `dependencies`."""
    with tempfile.TemporaryDirectory(prefix="testbed-maven-") as folder:
        project = Path(folder) / "pom.xml"
        project.write_text(pom(dependencies), encoding="utf-8")
        yield project


def copy_jars(dependencies: Sequence[Coordinates], target: Path, *, transitive: bool = True) -> None:
    """Copy the jars of `dependencies` (and of their run-time dependencies) into `target`. Raise as `run_maven`."""
    wanted = (
        "-U",  # request again what was missing at another time
        f"{PLUGIN}:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DexcludeTransitive={str(not transitive).lower()}",
        f"-DoutputDirectory={target}",
    )
    with _project(dependencies) as project:
        run_maven(project, wanted, purpose="fetches jars")


def missing_artifacts(output: str) -> tuple[str, ...]:
    """Return the artifacts that do not exist according to Maven's output, as `group:name:version`."""
    coordinates = r"([\w.-]+):([\w.-]+):jar:([\w.:-]+?)"
    found = re.findall(rf"(?:Could not find artifact|Failure to find) {coordinates} in ", output)
    found += re.findall(rf"{coordinates} was not found in ", output)
    return tuple(dict.fromkeys(":".join(part) for part in found))


def known_versions(group: str, name: str) -> tuple[str, ...]:
    """Return the versions that the registry's metadata lists, oldest first; empty when it cannot be read."""
    # An open range makes Maven fetch the metadata into its local repository, where it is read.
    # Maven must fail, since no version is in this range. The metadata is there by then.
    with _project([Coordinates(group, name, "(,0]")]) as project, suppress(SoftwareError):
        run_maven(project, [f"{PLUGIN}:resolve"], purpose="lists versions", timeout_s=60)
    repository = Path.home() / ".m2" / "repository" / Path(*group.split(".")) / name
    versions: dict[str, None] = {}
    for metadata in sorted(repository.glob("maven-metadata-*.xml")):
        with suppress(ElementTree.ParseError):  # an interrupted download
            for element in ElementTree.parse(metadata).iterfind(".//version"):
                versions[element.text or ""] = None
    return tuple(versions)


def s3a_jars(version: str) -> tuple[Path, ...]:
    """Return the jars with which Spark reads an object store: Hadoop's S3A and its client, 700 MB, fetched once.

    `version` is Hadoop's. Raise `SoftwareError` when the jars are not available.
    """

    def fetch(target: Path) -> None:
        copy_jars([Coordinates("org.apache.hadoop", "hadoop-aws", version)], target)

    return tuple(sorted(artefact("hadoop-aws", version, fetch).glob("*.jar")))


BUILD_S = 600.0
BUILD_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Maven and the JVM of its tests. Both end after seconds: the better code of C2 costs more than it saves."""


@dataclass(frozen=True, slots=True)
class MavenProject:
    """A folder of this tree with a `pom.xml` and `src/main`; `title` names its product in messages."""

    title: str
    sources: Path

    def digest(self) -> str:
        """Return the digest over all sources of the jar, without its tests."""
        main = sorted(path for path in (self.sources / "src" / "main").rglob("*") if path.is_file())
        files = [self.sources / "pom.xml", *main]
        return digest_of((str(path.relative_to(self.sources)), sha256_of(path)) for path in files)

    def run(self, arguments: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> None:
        """Run Maven on a copy of the sources: the tree may be read-only and stays unchanged.

        Raise SoftwareError when Maven is missing or fails.
        """
        # The user's own flags replace these: a JVM does not start with two collectors.
        flags = {"MAVEN_OPTS": os.environ.get("MAVEN_OPTS") or BUILD_FLAGS, **(env or {})}
        words = [f"-DargLine={BUILD_FLAGS}", *arguments]
        with tempfile.TemporaryDirectory(prefix="testbed-maven-") as folder:
            project = Path(folder) / "java"
            shutil.copytree(self.sources, project, ignore=shutil.ignore_patterns("target"))
            run_maven(project / "pom.xml", words, purpose=f"builds {self.title}", env=flags, timeout_s=BUILD_S)
