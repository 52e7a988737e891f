"""The source of a Kafka, as one text: a release, the path of a tarball or of a folder, or an imported build."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.errors import UsageError

OLDEST = (3, 9, 0)
EXAMPLE = "4.3.1"
BUILD_DIGITS = 12
_NUMBER = r"\d{1,3}\.\d{1,3}\.\d{1,3}"
_VERSION = rf"{_NUMBER}(-[A-Za-z0-9.-]{{1,30}})?"
VERSION = re.compile(_VERSION, re.ASCII)
AUTOMQ = "automq-"
"""The prefix of an imported AutoMQ's version; its own number follows."""
BUILD = re.compile(rf"({_VERSION}|{AUTOMQ}[A-Za-z0-9._-]+)\+[0-9a-f]{{{BUILD_DIGITS}}}", re.ASCII)
_TARBALL = (".tgz", ".tar.gz")
SNAPSHOT = "-SNAPSHOT"


class Kind(StrEnum):
    """The four ways to name a Kafka."""

    RELEASE = "release"
    """A version of Maven's registry: `4.3.1`."""
    TARBALL = "tarball"
    """A binary release as a file: `kafka_2.13-4.3.1.tgz`."""
    FOLDER = "folder"
    """An unpacked release (`libs/`), or a source checkout that has been built."""
    BUILD = "build"
    """The version of an earlier import: `4.3.1+0123456789ab`, with digits of its jars' digest."""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A Kafka as the user named it. `text` is the version, or the absolute path."""

    kind: Kind
    text: str

    @property
    def path(self) -> Path:
        """Return the path of a tarball or folder on this machine."""
        return Path(self.text)

    @property
    def is_permanent(self) -> bool:
        """Return whether the text always names the same jars: a path may have another build later."""
        return self.kind in (Kind.RELEASE, Kind.BUILD)

    def __str__(self) -> str:
        return self.text


def is_path(text: str) -> bool:
    """Return whether `text` is written as a path: it has a slash, begins with `~`, or ends as tarballs do."""
    return "/" in text or text.startswith("~") or text in (".", "..") or text.endswith(_TARBALL)


def parse_source(text: str) -> KafkaSource:
    """Return the source that `text` names.

    Raise UsageError when it is no version, when the version is too old, or when the path does not exist.
    """
    if BUILD.fullmatch(text):
        return KafkaSource(Kind.BUILD, text)
    if VERSION.fullmatch(text):
        wrong = too_old(text) or _of_many_builds(text)
        if wrong:
            raise UsageError(wrong)
        return KafkaSource(Kind.RELEASE, text)
    if not is_path(text):
        raise UsageError(_no_kafka(text))
    try:
        path = Path(text).expanduser().resolve()
        if path.is_dir():
            return KafkaSource(Kind.FOLDER, str(path))
        if path.is_file():
            return KafkaSource(Kind.TARBALL, str(path))
    except (OSError, RuntimeError) as error:  # no permission; an unknown user after `~`; links in a circle
        raise UsageError(f"{text} cannot be read: {error}") from error
    raise UsageError(f"there is no Kafka at {path}: no such file or folder")


def too_old(version: str) -> str | None:
    """Return why a version (`3.8.1`, also `4.4.0-SNAPSHOT`) cannot be run, or None."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers >= OLDEST:
        return None
    oldest = ".".join(map(str, OLDEST))
    return (
        f"Kafka {version} is too old; allowed: {oldest} or newer. {oldest} is the release that everything newer can be "
        "upgraded from, and the first whose KRaft has a dynamic quorum (kraft.version); "
        "formatting, features and the throttle's bound are known from there on"
    )


def _of_many_builds(version: str) -> str | None:
    """Return why a snapshot of Maven cannot be named, or None for another version."""
    if not version.endswith(SNAPSHOT):
        return None
    return (
        f"Kafka {version}: Maven gives this version to one build after the other; name the build: the checkout "
        "(./kafka) after `./gradlew jar`, or the tarball of `./gradlew releaseTarGz`"
    )


def _no_kafka(text: str) -> str:
    short = re.fullmatch(r"[vV]?(\d{1,3})(\.\d{1,3})?(\.\d{1,3})?", text, re.ASCII)
    meant = f"; did you mean {short[1]}{short[2] or '.0'}{short[3] or '.0'}?" if short else ""
    return (
        f"{text!r} is no Kafka; allowed: a release ({EXAMPLE}), the path of a tarball (./kafka_2.13-{EXAMPLE}.tgz), "
        f"the path of a folder with a build (./kafka){meant}"
    )
