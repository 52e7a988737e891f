"""Who may use a testbed's object store: made for it, kept in files that only root reads, printed nowhere."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import TestbedError
from testbed.provision import state as states
from testbed.provision.keys import write_private

FILE = "/etc/testbed/s3/credentials"
"""On every host that serves or uses the store."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The one user of a store. Its representation has neither part."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @classmethod
    def generate(cls) -> "Credentials":
        """New ones."""
        return cls(secrets.token_hex(10), secrets.token_hex(20))

    @classmethod
    def parse(cls, text: str) -> "Credentials":
        """The inverse of `text`. Raises ValueError, which does not repeat what was found."""
        found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if not (found.get("access_key") and found.get("secret_key")):
            raise ValueError("expected the lines access_key=… and secret_key=…")
        return cls(found["access_key"], found["secret_key"])

    def text(self) -> str:
        """Two lines, as they lie on hosts."""
        return f"access_key={self.access_key}\nsecret_key={self.secret_key}\n"


def path(testbed: str) -> Path:
    """Where the machine keeps those of a testbed."""
    return states.folder(testbed) / "s3-credentials"


def save(testbed: str, credentials: Credentials) -> None:
    """Keep them, for their owner's eyes only. Raises `TestbedError`, for instance on a full disk."""
    try:
        write_private(path(testbed), credentials.text().encode())
    except OSError as error:
        raise TestbedError(f"{path(testbed)} cannot be written: {error.strerror}") from error


def load(testbed: str) -> Credentials:
    """Those of a testbed. Raises `TestbedError` when they are not there, or damaged."""
    try:
        return Credentials.parse(path(testbed).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise TestbedError(
            f"{path(testbed)}, with which testbed {testbed}'s object store is used, cannot be read: {why}; "
            f"`testbed down {testbed}` and `testbed up` make it anew"
        ) from error
