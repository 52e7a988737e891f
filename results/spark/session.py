"""A local Spark session that is quiet, small, and leaves nothing behind."""

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def session(master: str = "local[2]", memory: str = "2g") -> Iterator[SparkSession]:
    """A session for the `with` block; starting it takes some seconds, so share it.

    Its UI is off, its temporary files and warehouse lie in a folder that is removed at the end. `memory` is the
    driver's heap as Spark writes it (``2g``).
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory(prefix="testbed-spark-") as folder, warnings.catch_warnings():
        # Nothing here hands a pandas frame to Spark.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        builder = SparkSession.Builder().master(master).appName("testbed results")
        for key, value in _settings(folder, memory).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


def _settings(folder: str, memory: str) -> dict[str, str]:
    # Log4j speaks before a session can set its level: a configuration file is the only way to keep it quiet.
    log4j = f"{folder}/log4j2.properties"
    with open(log4j, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a name, not a path object, is needed
        stream.write(_LOG4J)
    java = f"-Dlog4j2.configurationFile={log4j} -Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return {
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
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
