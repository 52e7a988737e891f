"""Spark's settings for a store on S3: Hadoop's S3A and its jars, which Spark does not bring. Pure."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit


def s3_settings(location: str, jars: Sequence[Path]) -> dict[str, str]:
    """Return Spark's settings for reading a store at `s3://bucket/prefix?endpoint_override=…&scheme=…&region=…`.

    `jars` are those of `org.apache.hadoop:hadoop-aws`, of `hadoop_version()`, with what it needs. Credentials are no
    settings, which others can see: they are in the environment, `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, as for
    the store itself. Nothing for a store elsewhere.
    """
    parts = urlsplit(location)
    if parts.scheme not in ("s3", "s3a"):
        return {}
    asked = dict(parse_qsl(parts.query))
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    if endpoint := asked.get("endpoint_override"):
        scheme = asked.get("scheme", "https")
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
        settings["spark.hadoop.fs.s3a.endpoint.region"] = asked.get("region", "us-east-1")
    elif region := asked.get("region"):
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region
    return settings


def hadoop_version(jars: Path | None = None) -> str:
    """Return the version of the Hadoop among Spark's jars: pyspark's, or those of a folder.

    Raise FileNotFoundError without one.
    """
    if jars is None:
        import pyspark

        jars = Path(pyspark.__path__[0]) / "jars"
    for jar in sorted(jars.glob("hadoop-client-api-*.jar")):
        return jar.stem.removeprefix("hadoop-client-api-")
    raise FileNotFoundError(f"{jars} has no hadoop-client-api: no Hadoop comes with this Spark")
