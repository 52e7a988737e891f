"""Certificates for tests: an authority, and what it signs."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certified:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption: serialization.KeySerializationEncryption = (
            serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        )
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()

    def pkcs12(self, password: str, *, with_key: bool) -> bytes:
        """As `keytool` writes it: a key with its certificate, or a trusted certificate alone."""
        return pkcs12.serialize_key_and_certificates(
            b"entry",
            self.key if with_key else None,
            self.certificate if with_key else None,
            None if with_key else [self.certificate],
            serialization.BestAvailableEncryption(password.encode()),
        )


def authority(name: str = "test authority") -> Certified:
    """A certificate that signs others, and itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, name, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Certified(builder.sign(key, hashes.SHA256()), key)


def signed(by: Certified, name: str, addresses: Sequence[str] = ()) -> Certified:
    """A certificate for a server at these addresses, or for a client."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = by.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    builder = _builder(name, str(issuer), key)
    if addresses:
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Certified(builder.sign(by.key, hashes.SHA256()), key)


def one_line(pem: str) -> str:
    """PEM as it stands in a properties file: lines joined by blanks."""
    return " ".join(pem.split("\n")).strip()


def _builder(name: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=2))
    )
