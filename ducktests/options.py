"""What `--cluster-file` may say: a JSON object, every field optional, every mistake an error."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from results.contract.document import DocumentError, decode
from testbed.errors import UsageError


@dataclass(frozen=True, slots=True)
class Options:
    """Which Kafka, which store, and which testbeds that are up already (topology → testbed)."""

    kafka: str | None = None
    """A version, or whatever else `testbed up --kafka` takes; None is what each topology says."""
    store: str | None = None
    on: Mapping[str, str] = field(default_factory=dict)
    again: int = 0
    """How often a case is run again that only the machine made inconclusive."""


def read_options(path: str | None) -> Options:
    """The options of a file; without one the defaults. Raises `UsageError`."""
    if path is None:
        return Options()
    try:
        return decode(Options, json.loads(Path(path).read_text(encoding="utf-8")), path)
    except OSError as error:
        raise UsageError(f"--cluster-file {path}: {error.strerror}") from error
    except DocumentError as error:
        raise UsageError(f"--cluster-file {error}") from error
    except ValueError as error:
        raise UsageError(f"--cluster-file {path}: not a JSON document: {error}") from error
