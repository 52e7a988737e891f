"""What Spark needs to read a store among objects: Hadoop's S3A and the client beneath it, some 700 MB, fetched once."""

from pathlib import Path

from testbed.software.cache import artefact
from testbed.software.maven import Coordinates, copy_jars


def s3a_jars(version: str) -> tuple[Path, ...]:
    """The jars for a Hadoop of this version. Raises `SoftwareError` when they are not to be had."""

    def fetch(target: Path) -> None:
        copy_jars([Coordinates("org.apache.hadoop", "hadoop-aws", version)], target)

    return tuple(sorted(artefact("hadoop-aws", version, fetch).glob("*.jar")))
