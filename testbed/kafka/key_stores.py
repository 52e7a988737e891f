"""Certificates and keys from the stores that Java clients use, as PEM.

PEM and PKCS #12 are read, the latter by `cryptography`. JKS is Java's own: it is refused, with the command that
converts it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class StoreError(ValueError):
    """A store that cannot be used; the message says why, and holds nothing of its content."""


@dataclass(frozen=True)
class Identity:
    """What a client proves who it is with: its certificate and those above it, and the key, not encrypted."""

    certificates: str
    key: str = field(repr=False)


def trusted_from_file(path: Path, kind: str | None, password: str | None) -> str:
    """Return the certificates of a trust store. Raises `StoreError`."""
    content = _content(path, kind)
    if isinstance(content, str):
        return trusted(content, str(path))
    store = _pkcs12(path, content, password)
    found = [each.certificate for each in store.additional_certs]
    found += [store.cert.certificate] if store.cert else []
    if not found:
        raise StoreError(f"{path}: holds no certificate")
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in found)


def identity_from_file(path: Path, kind: str | None, password: str | None, key_password: str | None) -> Identity:
    """Return the key and the certificates of a key store. Raises `StoreError`."""
    content = _content(path, kind)
    if isinstance(content, str):
        return identity(content, content, key_password, str(path))
    store = _pkcs12(path, content, password)
    if store.key is None or store.cert is None:
        raise StoreError(f"{path}: holds no private key with its certificate")
    chain = [store.cert, *store.additional_certs]
    return Identity(
        "".join(each.certificate.public_bytes(serialization.Encoding.PEM).decode() for each in chain),
        _plain(store.key),
    )


def trusted(text: str, where: str) -> str:
    """Return the certificates of a PEM text, whose lines may have been joined. Raises `StoreError`."""
    blocks = [block for name, block in _blocks(text) if name.endswith("CERTIFICATE")]
    if not blocks:
        raise StoreError(f"{where}: holds no PEM certificate")
    joined = "".join(blocks)
    try:
        x509.load_pem_x509_certificates(joined.encode())
    except ValueError as error:
        raise StoreError(f"{where}: a certificate cannot be read: {error}") from error
    return joined


def identity(certificates: str, key: str, key_password: str | None, where: str) -> Identity:
    """Return certificates and key of PEM texts. Raises `StoreError`."""
    keys = [block for name, block in _blocks(key) if name.endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise StoreError(f"{where}: holds {len(keys)} PEM private keys; must be one")
    encrypted = keys[0].startswith("-----BEGIN ENCRYPTED") or "Proc-Type: 4,ENCRYPTED" in keys[0]
    if encrypted and key_password is None:
        raise StoreError(f"{where}: its private key is encrypted; give ssl.key.password")
    try:
        loaded = serialization.load_pem_private_key(
            keys[0].encode(), (key_password or "").encode() if encrypted else None
        )
    except (ValueError, TypeError) as error:
        raise StoreError(f"{where}: its private key cannot be read, or ssl.key.password is not its own") from error
    return Identity(trusted(certificates, where), _plain(loaded))


def _plain(key: PrivateKeyTypes) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _content(path: Path, kind: str | None) -> str | bytes:
    """Text of PEM, bytes of PKCS #12. What is in the file counts, as `ssl.*store.type` often says nothing."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    if content.startswith((_JKS, _JCEKS)):
        raise StoreError(
            f"{path}: is a JKS store, which only Java reads; convert it with `keytool -importkeystore "
            f"-srckeystore {path.name} -destkeystore {path.stem}.p12 -deststoretype PKCS12` and name that"
        )
    is_pem = b"-----BEGIN " in content
    if kind is not None and (kind.upper() == "PEM") != is_pem:
        raise StoreError(f"{path}: is said to be {kind} but is {'PEM' if is_pem else 'not PEM'}")
    return content.decode("utf-8", "replace") if is_pem else content


def _pkcs12(path: Path, content: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise StoreError(f"{path}: is no PKCS #12 store, or its password is another") from error


def _blocks(text: str) -> list[tuple[str, str]]:
    """Each PEM block with its name, its lines as they must be: in a properties file they are often joined."""
    found = []
    for name, body in _PEM_BLOCK.findall(text):
        if ":" in body:  # headers of the old form of encryption: lines matter
            lines = body.strip()
        else:
            joined = "".join(body.split())
            lines = "\n".join(joined[at : at + 64] for at in range(0, len(joined), 64))
        found.append((name, f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----\n"))
    return found
