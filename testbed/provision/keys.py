"""SSH keys of one testbed: made for it, thrown away with it."""

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key in OpenSSH's formats."""

    private: bytes
    public: str

    @classmethod
    def generate(cls) -> "KeyPair":
        """A new key."""
        key = Ed25519PrivateKey.generate()
        return cls(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.OpenSSH,
                serialization.NoEncryption(),
            ),
            key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode(),
        )


def write_private(path: Path, content: bytes) -> None:
    """Write a file nobody else can read, not even for the moment in which it is made."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(content)
