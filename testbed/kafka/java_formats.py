"""The formats of Java clients' files: properties, login modules, key and trust stores.

The parser reads properties as `java.util.Properties.load` does, with the line of every entry. It reads stores as PEM or
PKCS #12, the latter by `cryptography`. It refuses JKS, with the command that converts it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_ENTRY = re.compile(rf"((?:\\.?|[^\\=:{_BLANK}])*)[{_BLANK}]*[=:]?[{_BLANK}]*(.*)", re.DOTALL)
"""A key up to its separator, and the value. An escaped character separates nothing."""


class PropertiesError(ValueError):
    """Malformed properties; ``line`` says where."""

    def __init__(self, line: int, why: str) -> None:
        self.line = line
        super().__init__(why)


def parse_properties(text: str) -> Iterator[tuple[int, str, str]]:
    r"""Yield (line, from 1, on which it begins; key; value) of each entry in order, repeated keys included.

    Comments (``#``, ``!``), continued lines, the three separators (``=``, ``:``, blank) and escapes (``\n``,
    ``\u0041``, …) are as in Java. Raise `PropertiesError`.
    """
    for line, logical in _logical_lines(text):
        entry = _ENTRY.fullmatch(logical)
        assert entry is not None  # it matches every text
        yield (line, _unescape(entry[1], line), _unescape(entry[2], line))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Return each logical line that is not empty or a comment, joined with its continuation lines."""
    begun, parts = 0, list[str]()
    # Not splitlines: Java knows no other line endings.
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        stripped = natural.lstrip(_BLANK)
        if not parts:
            if not stripped or stripped[0] in "#!":
                continue
            begun = number
        slashes = len(stripped) - len(stripped.rstrip("\\"))
        if slashes % 2:
            parts.append(stripped[:-1])
            continue
        yield begun, "".join([*parts, stripped])
        parts = []
    if parts:
        yield begun, "".join(parts)


def _unescape(text: str, line: int) -> str:
    def one(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped[0] != "u":
            return _ESCAPES.get(escaped, escaped)
        if len(escaped) != 5:
            raise PropertiesError(line, "\\u must be followed by four hexadecimal digits")
        return chr(int(escaped[1:], 16))

    # A surrogate pair is written as two escapes.
    text = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", one, text, flags=re.DOTALL)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
"""Login module → its mechanisms."""

_WORD = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s=;"']+"""
"""A value, quoted as Java's tokenizer has it: by either quote, or not at all."""
_WHOLE = re.compile(rf"\s*(?P<module>[\w.$]+)\s+(?P<flag>\w+)(?P<options>(?:\s+[\w.-]+\s*=\s*(?:{_WORD}))*)\s*;\s*")
_OPTION = re.compile(rf"([\w.-]+)\s*=\s*({_WORD})")


class JaasError(ValueError):
    """An unusable login; the message contains no option's value."""


@dataclass(frozen=True)
class JaasLogin:
    """A user and a password, for these mechanisms."""

    mechanisms: tuple[str, ...]
    username: str
    password: str = field(repr=False)


def parse_jaas(text: str) -> JaasLogin:
    """Return the login in ``org.apache.kafka…LoginModule required username="…" password="…";``. Raise `JaasError`."""
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise JaasError('is not of the form `MODULE required username="…" password="…";`')
    module = whole["module"]
    if module not in MODULES:
        raise JaasError(f"{module} is no login module of the Python clients; they have {' and '.join(sorted(MODULES))}")
    options = {name: _unquoted(value) for name, value in _OPTION.findall(whole["options"])}
    unknown = sorted(set(options) - {"username", "password"})
    if unknown:
        raise JaasError(f"the options {', '.join(unknown)} cannot be mapped to the Python clients")
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise JaasError(f"lacks {' and '.join(missing)}")
    return JaasLogin(MODULES[module], options["username"], options["password"])


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word[0] in "\"'" else word


_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class KeyStoreError(ValueError):
    """An unusable store; the message says why, and contains none of its content."""


@dataclass(frozen=True)
class KeyIdentity:
    """A client's identity: its certificate with the certificates above it, and the key, not encrypted."""

    certificates: str
    key: str = field(repr=False)


def trusted_from_file(path: Path, kind: str | None, password: str | None) -> str:
    """Return the certificates of a trust store. Raise `KeyStoreError`."""
    content = _content(path, kind)
    if isinstance(content, str):
        return trusted(content, str(path))
    store = _pkcs12(path, content, password)
    found = [each.certificate for each in store.additional_certs]
    found += [store.cert.certificate] if store.cert else []
    if not found:
        raise KeyStoreError(f"{path}: holds no certificate")
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in found)


def identity_from_file(path: Path, kind: str | None, password: str | None, key_password: str | None) -> KeyIdentity:
    """Return the key and the certificates of a key store. Raise `KeyStoreError`."""
    content = _content(path, kind)
    if isinstance(content, str):
        return identity(content, content, key_password, str(path))
    store = _pkcs12(path, content, password)
    if store.key is None or store.cert is None:
        raise KeyStoreError(f"{path}: holds no private key with its certificate")
    chain = [store.cert, *store.additional_certs]
    return KeyIdentity(
        "".join(each.certificate.public_bytes(serialization.Encoding.PEM).decode() for each in chain), _plain(store.key)
    )


def trusted(text: str, where: str) -> str:
    """Return the certificates of a PEM text, whose lines may have been joined. Raise `KeyStoreError`."""
    blocks = [block for name, block in _blocks(text) if name.endswith("CERTIFICATE")]
    if not blocks:
        raise KeyStoreError(f"{where}: holds no PEM certificate")
    joined = "".join(blocks)
    try:
        x509.load_pem_x509_certificates(joined.encode())
    except ValueError as error:
        raise KeyStoreError(f"{where}: a certificate cannot be read: {error}") from error
    return joined


def identity(certificates: str, key: str, key_password: str | None, where: str) -> KeyIdentity:
    """Return certificates and key of PEM texts. Raise `KeyStoreError`."""
    keys = [block for name, block in _blocks(key) if name.endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise KeyStoreError(f"{where}: holds {len(keys)} PEM private keys; must be one")
    encrypted = keys[0].startswith("-----BEGIN ENCRYPTED") or "Proc-Type: 4,ENCRYPTED" in keys[0]
    if encrypted and key_password is None:
        raise KeyStoreError(f"{where}: its private key is encrypted; give ssl.key.password")
    try:
        loaded = serialization.load_pem_private_key(
            keys[0].encode(), (key_password or "").encode() if encrypted else None
        )
    except (ValueError, TypeError) as error:
        raise KeyStoreError(f"{where}: its private key cannot be read, or ssl.key.password is not its own") from error
    return KeyIdentity(trusted(certificates, where), _plain(loaded))


def _plain(key: PrivateKeyTypes) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _content(path: Path, kind: str | None) -> str | bytes:
    """Return text of PEM, bytes of PKCS #12. The file's content decides, as `ssl.*store.type` is often missing."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise KeyStoreError(f"{path}: {why}") from error
    if content.startswith((_JKS, _JCEKS)):
        raise KeyStoreError(
            f"{path}: is a JKS store, which only Java reads; convert it with `keytool -importkeystore "
            f"-srckeystore {path.name} -destkeystore {path.stem}.p12 -deststoretype PKCS12` and name that"
        )
    is_pem = b"-----BEGIN " in content
    if kind is not None and (kind.upper() == "PEM") != is_pem:
        raise KeyStoreError(f"{path}: is said to be {kind} but is {'PEM' if is_pem else 'not PEM'}")
    return content.decode("utf-8", "replace") if is_pem else content


def _pkcs12(path: Path, content: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise KeyStoreError(f"{path}: is no PKCS #12 store, or its password is another") from error


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return each PEM block with its name and restored lines: in a properties file they are often joined."""
    found = []
    for name, body in _PEM_BLOCK.findall(text):
        if ":" in body:  # headers of the old form of encryption: lines matter
            lines = body.strip()
        else:
            joined = "".join(body.split())
            lines = "\n".join(joined[at : at + 64] for at in range(0, len(joined), 64))
        found.append((name, f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----\n"))
    return found
