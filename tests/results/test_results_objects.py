"""Spark's settings for a store among objects: of its location, and without credentials."""

import os
import zipfile
from pathlib import Path

import pytest

from results.spark import session
from results.spark.objects import hadoop_version, s3_settings

JARS = (Path("/jars/hadoop-aws-3.5.0.jar"), Path("/jars/bundle.jar"))


def test_a_store_of_files_needs_nothing():
    for location in ("/var/store", "file:///var/store"):
        assert s3_settings(location, JARS) == {}


def test_an_endpoint_of_ones_own(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret")
    settings = s3_settings("s3a://bucket/x?endpoint_override=198.19.0.12:9000&scheme=http", JARS)
    assert settings["spark.jars"] == "/jars/hadoop-aws-3.5.0.jar,/jars/bundle.jar"
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://198.19.0.12:9000"
    assert settings["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert "the-secret" not in str(settings)


def test_a_region():
    settings = s3_settings("s3://bucket/x?region=eu-central-1", JARS)
    assert settings["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"
    assert "spark.hadoop.fs.s3a.endpoint" not in settings
    assert settings["spark.hadoop.fs.s3.impl"].endswith("S3AFileSystem")


def test_the_hadoop_that_comes_with_spark(tmp_path):
    assert hadoop_version().split(".")[0] == "3"
    with pytest.raises(FileNotFoundError, match="no Hadoop comes with this Spark"):
        hadoop_version(tmp_path)


def test_modules_whose_time_a_zip_file_cannot_say_are_sent_along(tmp_path, monkeypatch):
    """Images and reproducible packages have files of 1970, which ended every command with Spark."""
    package = tmp_path / "results"
    package.mkdir()
    (package / "__init__.py").write_text("")
    os.utime(package / "__init__.py", (0, 0))
    monkeypatch.setattr(session, "__file__", str(package / "spark" / "session.py"))
    with zipfile.ZipFile(session._package(str(tmp_path))) as archive:
        assert archive.namelist() == ["results/__init__.py"]
