"""The options in `--cluster-file`: a JSON object. Every field is optional, and every mistake is an error."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from results.contract.document import DocumentError, decode
from testbed.errors import UsageError


@dataclass(frozen=True, slots=True)
class Options:
    """The Kafka version, the store, and the testbeds that are already provisioned (topology → testbed)."""

    kafka: str | None = None
    """A version, or another value of `testbed up --kafka`; None for the version of each topology."""
    store: str | None = None
    on: Mapping[str, str] = field(default_factory=dict)
    again: int = 0
    """How often an inconclusive case is repeated when only the machine made it inconclusive."""


def read_options(path: str | None) -> Options:
    """Return the options of a file; the defaults without a file. Raise `UsageError` for a mistake."""
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
