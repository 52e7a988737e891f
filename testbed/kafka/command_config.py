"""``--command-config FILE``: a Java client's properties, mapped to kafka-python.

The reader refuses an unmapped property by name, with its file and line: an ignored property may be the one that keeps
a connection secure. No message holds a value of a password.
"""

import os
import secrets
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives import serialization

from testbed.errors import UsageError
from testbed.kafka import java_formats
from testbed.kafka.java_formats import KeyIdentity

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_STORE_TYPES = ("JKS", "PKCS12", "PEM")
_T = TypeVar("_T")

_OVERRIDDEN = ("bootstrap.servers",)
"""Properties of the command line, which takes precedence as in Kafka's own tools."""
_ONLY: Mapping[str, tuple[str, ...]] = {
    # The Python clients behave like this in any case.
    "ssl.enabled.protocols": ("TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2"),
    "ssl.protocol": ("TLS", "TLSv1.3"),
}
MAPPED = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "client.id",
    "request.timeout.ms",
)
"""The properties that the client takes over."""


class CommandConfigError(UsageError):
    """An unusable file; ``problems`` has one line for each mistake: file, line, property, why."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class _Secret(str):
    """A password that does not show when a client logs its settings."""

    def __repr__(self) -> str:
        return "'[hidden]'"


@dataclass(frozen=True)
class CommandConfig:
    """The settings of a client's connection. ``trusted`` is None for the certificates that the machine trusts."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    trusted: str | None = None
    identity: KeyIdentity | None = None
    check_host_name: bool = True
    client_id: str | None = None
    request_timeout_s: float | None = None

    @classmethod
    def load(cls, path: Path) -> "CommandConfig":
        """Return the configuration in a file; it names stores relative to the current directory, as in Java.

        Raise `CommandConfigError` with every mistake.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
            raise CommandConfigError([f"{path}: {why}"]) from error
        return _read(text, str(path))

    @property
    def encrypted(self) -> bool:
        """Return whether the connection is TLS."""
        return self.protocol.endswith("SSL")

    def kafka_python(self) -> dict[str, Any]:
        """Return the settings of kafka-python's clients."""
        settings: dict[str, Any] = {"security_protocol": self.protocol}
        if self.mechanism is not None:
            settings["sasl_mechanism"] = self.mechanism
            settings["sasl_plain_username"] = self.username
            settings["sasl_plain_password"] = _Secret(self.password or "")
        if self.encrypted:
            settings["ssl_context"] = self.tls_context()
        return settings

    def tls_context(self) -> ssl.SSLContext:
        """Return Python's own TLS settings, as strict as Java's."""
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=self.trusted)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.check_host_name
        # As in Java, every certificate in the trust store is trusted, not only that of a root.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if self.identity is not None:
            _load_identity(context, self.identity)
        return context


def _load_identity(context: ssl.SSLContext, identity: KeyIdentity) -> None:
    """Load a client's key. Python reads it from files only: it is on disk encrypted, briefly, for this user alone."""
    password = secrets.token_bytes(16).hex()
    key = serialization.load_pem_private_key(identity.key.encode(), None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )
    descriptor, path = tempfile.mkstemp(prefix="testbed-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(identity.certificates.encode() + key)
        context.load_cert_chain(path, password=password)
    finally:
        Path(path).unlink()


class _Reader:
    """The entries of one file, and its mistakes."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.problems: list[str] = []
        self.lines: dict[str, int] = {}
        self.values: dict[str, str] = {}
        try:
            for line, key, value in java_formats.parse_properties(text):
                self.lines[key], self.values[key] = line, value.strip()
        except java_formats.PropertiesError as error:
            self.problems.append(f"{source}:{error.line}: {error}")

    def problem(self, key: str, why: str) -> None:
        where = f"{self.source}:{self.lines[key]}" if key in self.lines else self.source
        self.problems.append(f"{where}: {key}: {why}")

    def get(self, key: str) -> str | None:
        return self.values.get(key) or None

    def one_of(self, key: str, allowed: tuple[str, ...], default: str) -> str:
        found = (self.get(key) or default).upper()
        if found not in allowed:
            self.problem(key, f"{self.values[key]!r} is not supported; supported are {', '.join(allowed)}")
            return default
        return found

    def reading(self, key: str, read: Callable[[], _T]) -> _T | None:
        """Return the result of ``read``, or None after recording the problem."""
        try:
            return read()
        except (java_formats.JaasError, java_formats.KeyStoreError) as error:
            self.problem(key, str(error))
            return None


def _read(text: str, source: str) -> CommandConfig:
    reader = _Reader(text, source)
    _refuse_unmapped(reader)
    protocol = reader.one_of("security.protocol", PROTOCOLS, "PLAINTEXT")
    mechanism, login = _login(reader, protocol)
    trusted, identity = (_trusted(reader), _identity(reader)) if protocol.endswith("SSL") else (None, None)
    algorithm = reader.values.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("https", ""):
        reader.problem("ssl.endpoint.identification.algorithm", "must be https, or nothing to switch the check off")
    timeout = reader.get("request.timeout.ms")
    if timeout is not None and not (timeout.isascii() and timeout.isdigit() and int(timeout) > 0):
        reader.problem("request.timeout.ms", f"{timeout!r} is not a number of milliseconds above 0")
        timeout = None
    if reader.problems:
        raise CommandConfigError(reader.problems)
    return CommandConfig(
        protocol,
        mechanism,
        login.username if login else None,
        login.password if login else None,
        trusted,
        identity,
        algorithm.lower() == "https",
        reader.get("client.id"),
        None if timeout is None else int(timeout) / 1000,
    )


def _refuse_unmapped(reader: _Reader) -> None:
    for key, value in reader.values.items():
        if key in _OVERRIDDEN:
            continue
        if key in _ONLY:
            if value.replace(" ", "") not in _ONLY[key]:
                reader.problem(key, f"the Python clients speak TLS 1.2 and 1.3; leave it out, or write {_ONLY[key][0]}")
        elif key not in MAPPED:
            reader.problem(key, "cannot be mapped to the Python clients; leave it out if it does not matter here")
        elif value.startswith("${"):
            reader.problem(key, "values from a config provider are not supported; write the value itself")


def _login(reader: _Reader, protocol: str) -> tuple[str | None, java_formats.JaasLogin | None]:
    if not protocol.startswith("SASL"):
        return None, None
    if reader.get("sasl.mechanism") is None:
        reader.problem(
            "sasl.mechanism", f"is missing, so Java would take GSSAPI; supported are {', '.join(MECHANISMS)}"
        )
        return None, None
    mechanism = reader.one_of("sasl.mechanism", MECHANISMS, MECHANISMS[0])
    text = reader.get("sasl.jaas.config")
    if text is None:
        reader.problem("sasl.jaas.config", f"is missing; {mechanism} needs a user and a password")
        return mechanism, None
    login = reader.reading("sasl.jaas.config", lambda: java_formats.parse_jaas(text))
    if login is not None and mechanism not in login.mechanisms:
        reader.problem("sasl.jaas.config", f"is a login for {' or '.join(login.mechanisms)}, not for {mechanism}")
    return mechanism, login


def _trusted(reader: _Reader) -> str | None:
    kind = _kind(reader, "ssl.truststore.type")
    location, certificates = reader.get("ssl.truststore.location"), reader.get("ssl.truststore.certificates")
    if location is not None:
        path, password = Path(location), reader.get("ssl.truststore.password")
        return reader.reading("ssl.truststore.location", lambda: java_formats.trusted_from_file(path, kind, password))
    if certificates is not None:
        return reader.reading("ssl.truststore.certificates", lambda: java_formats.trusted(certificates, "its value"))
    return None


def _identity(reader: _Reader) -> KeyIdentity | None:
    kind, key_password = _kind(reader, "ssl.keystore.type"), reader.get("ssl.key.password")
    location = reader.get("ssl.keystore.location")
    key, chain = reader.get("ssl.keystore.key"), reader.get("ssl.keystore.certificate.chain")
    if location is not None:
        path, password = Path(location), reader.get("ssl.keystore.password")
        return reader.reading(
            "ssl.keystore.location", lambda: java_formats.identity_from_file(path, kind, password, key_password)
        )
    if key is not None and chain is not None:
        return reader.reading("ssl.keystore.key", lambda: java_formats.identity(chain, key, key_password, "its value"))
    if key is not None or chain is not None:
        reader.problem("ssl.keystore.key", "and ssl.keystore.certificate.chain belong together: one is missing")
    return None


def _kind(reader: _Reader, key: str) -> str | None:
    """Return a store's declared type. JKS is Java's name for "JKS or PKCS #12", so it counts as undeclared."""
    kind = reader.one_of(key, _STORE_TYPES, "JKS") if reader.get(key) else "JKS"
    return None if kind == "JKS" else kind
