"""A local Spark session that is quiet, small, and leaves nothing behind."""

import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

MEMORY = "2g"
"""The driver's heap without another request, as Spark writes it: `spark.driver.memory`."""

LAUNCHER_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the JVM that only writes the command line of Spark's own: the better code of C2 costs more than it saves."""


class SparkMissing(RuntimeError):
    """No session: Spark's JVM did not start, or its master cannot be used; the message has what it said."""


@contextmanager
def session(
    master: str = "local[2]", memory: str = MEMORY, *, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """Yield a session for the `with` block; starting it takes some seconds, so share it.

    Its UI is off, its temporary files and warehouse lie in a folder that is removed at the end. `memory` is the
    driver's heap as Spark writes it (``2g``), and that of each executor where `master` is a cluster. This package is
    sent along: what workers need besides is Python of the same version, with what `pyproject.toml` lists.
    `settings` are more of Spark's own, such as `results.spark.objects.s3_settings`. Raise `SparkMissing`.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_FLAGS)
    with tempfile.TemporaryDirectory(prefix="testbed-spark-") as folder:
        conf = SparkConf().setMaster(master).setAppName("testbed results")
        conf.setAll(list(_settings(folder, memory, local=master.startswith("local")).items()))
        conf.setAll(list(settings.items()))
        spark = SparkSession(_context(conf, Path(folder) / "jvm.log"))
        spark.sparkContext.setLogLevel("ERROR")
        try:
            spark.sparkContext.addPyFile(_package(folder))
            yield spark
        finally:
            spark.stop()


def _context(conf: SparkConf, log: Path) -> SparkContext:
    """Return a context whose JVM, when this starts one, speaks into `log` and not into the user's terminal."""
    if SparkContext._gateway is None:
        with log.open("wb") as stream:
            try:
                gateway = launch_gateway(conf, {"stdout": stream, "stderr": stream})  # type: ignore[no-untyped-call]
            except PySparkRuntimeError as error:
                said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise SparkMissing(f"Spark did not start ({error}); it said:\n{said}") from error
    else:
        gateway = SparkContext._gateway
    try:
        return SparkContext(conf=conf, gateway=gateway)
    except Py4JError as error:
        raise SparkMissing(f"Spark's context was not made: {str(error).splitlines()[0]}") from error


def _package(folder: str) -> str:
    """Return this package's modules as an archive that Python imports from, compiled where this process has them so.

    Each worker would compile them again: Python keeps nothing of what it compiles from an archive.
    """
    path = f"{folder}/testbed_results.zip"
    root = Path(__file__).parents[1]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in sorted(root.rglob("*.py")):
            name = file.relative_to(root.parent)
            archive.write(file, name)
            compiled = Path(cache_from_source(str(file)))
            if compiled.is_file():  # the worker checks that it is of this source and of its own Python
                archive.write(compiled, name.with_suffix(".pyc"))
    return path


def _settings(folder: str, memory: str, *, local: bool) -> dict[str, str]:
    # Log4j speaks before a session can set its level: a configuration file is the only way to keep it quiet.
    log4j = f"{folder}/log4j2.properties"
    with open(log4j, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a name, not a path object, is needed
        stream.write(_LOG4J)
    java = f"-Dlog4j2.configurationFile={log4j} -Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    # Workers on other machines have to find the driver: there Spark's own choice of an address stands.
    here = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"} if local else {}
    return {
        **here,
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.driver.extraJavaOptions": java,
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # Runs are small: planning again between stages and compiling each of them cost more than they save.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n
"""
