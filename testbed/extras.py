"""The optional parts of an installation, and the message when a command needs one that is not installed."""

from importlib.util import find_spec

from testbed.errors import TestbedError

EXTRAS = {
    "pyspark": "spark",
    "boto3": "s3",
    "botocore": "s3",
    "ducktape": "ducktape",
    "testcontainers": "testcontainers",
}
"""Python package → the extra of this project that installs it."""


def missing_extra(error: Exception) -> str | None:
    """Return the sentence for a package that is not installed and that an extra installs; None for other errors."""
    package = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    package = "pyspark" if package == "py4j" else package  # it comes with pyspark, and is imported before it
    return _sentence(package) if package in EXTRAS else None


def require_extra(package: str) -> None:
    """Raise `TestbedError` when a package of an extra is not installed. It is not imported, which may take a second."""
    if find_spec(package) is None:
        raise TestbedError(_sentence(package))


def _sentence(package: str) -> str:
    return f"this needs {package}: pip install 'testbed[{EXTRAS[package]}]'"
