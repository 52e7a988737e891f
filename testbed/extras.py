"""The optional parts of an installation, and the message when a command needs one that is not installed."""

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
    extra = EXTRAS.get(package)
    return None if extra is None else f"this needs {package}: pip install 'testbed[{extra}]'"
