"""Jars by way of the user's Maven: its settings, mirrors and local repository are used as they are."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from results.contract import durable
from testbed.errors import SoftwareError
from testbed.paths import cache_dir, state_dir
from testbed.software.cache import artefact
from testbed.software.commands import CommandError, run_logged

# By its full name, so that it is the same one everywhere, and that Maven says why when it cannot be had.
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
    """Maven says that an artifact does not exist."""


def pom(dependencies: Sequence[Coordinates]) -> str:
    """Return a project file that asks for `dependencies` and nothing else."""
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


def copy_jars(dependencies: Sequence[Coordinates], target: Path, *, transitive: bool = True) -> None:
    """Put the jars of `dependencies` (and of what they need at run time) into `target`.

    Raise NotInRegistry when Maven says that one does not exist, CommandError for anything else.
    """
    if shutil.which("mvn") is None:
        raise CommandError("mvn is not installed; on Debian: apt-get install maven")
    log = state_dir() / "logs" / "maven.log"
    # Maven's local repository is not made for two writers at once.
    with durable.lock(cache_dir() / ".maven.lock"), tempfile.TemporaryDirectory(prefix="testbed-maven-") as folder:
        project = Path(folder) / "pom.xml"
        project.write_text(pom(dependencies), encoding="utf-8")
        try:
            run_logged(
                [
                    "mvn",
                    "-B",
                    "-q",
                    "-U",  # ask again for what was not there at another time
                    "-Dstyle.color=never",
                    "-f",
                    project,
                    f"{PLUGIN}:copy-dependencies",
                    "-DincludeScope=runtime",
                    f"-DexcludeTransitive={str(not transitive).lower()}",
                    f"-DoutputDirectory={target}",
                ],
                log,
            )
        except CommandError as error:
            missing = missing_artifacts(error.output)
            if missing:
                raise NotInRegistry(f"Maven finds no {', '.join(missing)}") from error
            raise


def missing_artifacts(output: str) -> tuple[str, ...]:
    """Return the artifacts that Maven's output says do not exist, as `group:name:version`."""
    coordinates = r"([\w.-]+):([\w.-]+):jar:([\w.:-]+?)"
    found = re.findall(rf"(?:Could not find artifact|Failure to find) {coordinates} in ", output)
    found += re.findall(rf"{coordinates} was not found in ", output)
    return tuple(dict.fromkeys(":".join(part) for part in found))


def known_versions(group: str, name: str) -> tuple[str, ...]:
    """Return the versions that the registry's metadata lists, oldest first; empty when it cannot be read."""
    with tempfile.TemporaryDirectory(prefix="testbed-maven-") as folder:
        # An open range makes Maven fetch the metadata into its local repository, where it is read.
        log = Path(folder) / "log"
        project = Path(folder) / "pom.xml"
        project.write_text(pom([Coordinates(group, name, "(,0]")]), encoding="utf-8")
        try:
            with durable.lock(cache_dir() / ".maven.lock"):
                run_logged(["mvn", "-B", "-q", "-f", project, f"{PLUGIN}:resolve"], log, timeout_s=60)
        except CommandError:
            pass  # it must fail, since no version lies in that range; the metadata is there by then
        repository = Path.home() / ".m2" / "repository" / Path(*group.split(".")) / name
        versions: dict[str, None] = {}
        for metadata in sorted(repository.glob("maven-metadata-*.xml")):
            for element in ElementTree.parse(metadata).iterfind(".//version"):
                versions[element.text or ""] = None
        return tuple(versions)


def s3a_jars(version: str) -> tuple[Path, ...]:
    """Return the jars with which Spark reads a store among objects: Hadoop's S3A and its client, 700 MB, fetched once.

    `version` is Hadoop's. Raise `SoftwareError` when the jars are not to be had.
    """

    def fetch(target: Path) -> None:
        copy_jars([Coordinates("org.apache.hadoop", "hadoop-aws", version)], target)

    return tuple(sorted(artefact("hadoop-aws", version, fetch).glob("*.jar")))
