"""A Java client's properties: what is mapped, what is refused and how, and that no password is told."""

import logging
import socket
import ssl
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.kafka import java_formats
from testbed.kafka.command_config import MAPPED, CommandConfig, CommandConfigError
from testbed.kafka.java_formats import JaasError, parse_jaas
from tests.kafka.certificates import Certified, authority, one_line, signed

PASSWORD = 'open "sesame"; \\ =#'
PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="open \\\\"sesame\\\\"; \\\\\\\\ =#";'
)


@pytest.fixture(scope="module")
def ca() -> Certified:
    return authority()


def _load(tmp_path: Path, text: str) -> CommandConfig:
    path = tmp_path / "client.properties"
    path.write_text(text, encoding="utf-8")
    return CommandConfig.load(path)


def _problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(CommandConfigError) as caught:
        _load(tmp_path, text)
    return [problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


# -- the format --------------------------------------------------------------------------------------------


def test_the_format_is_java_s() -> None:
    text = "# one\n  ! two\na=1\r\nb : 2\nc 3\n\nd\\ e=x\\\n   y\\\\\n  f\nempty\ng=\\u0041\\t\\ud83d\\ude00\n h = = \n"
    assert list(java_formats.parse_properties(text)) == [
        (3, "a", "1"),
        (4, "b", "2"),
        (5, "c", "3"),
        (7, "d e", "xy\\"),
        (9, "f", ""),
        (10, "empty", ""),
        (11, "g", "A\t😀"),
        (12, "h", "= "),
    ]


@given(st.dictionaries(st.text(min_size=1).filter(lambda t: "\0" not in t), st.text(), max_size=5))
def test_whatever_is_escaped_is_read_back(entries: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        units = text.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))

    text = "".join(f"{escaped(key)}={escaped(value)}\n" for key, value in entries.items())
    assert {key: value for _line, key, value in java_formats.parse_properties(text)} == entries


def test_a_broken_escape_is_named_with_its_line(tmp_path: Path) -> None:
    assert _problems(tmp_path, "\n\na=\\u12") == [
        "client.properties:3: \\u must be followed by four hexadecimal digits"
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "no login module of the Python"),
        ("org.apache.kafka.common.security.plain.PlainLoginModule required;", "lacks username and password"),
        ('org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b"', "of the form"),
        (
            "org.apache.kafka.common.security.scram.ScramLoginModule required username=a password=b tokenauth=true;",
            "options tokenauth cannot",
        ),
    ],
)
def test_a_login_that_cannot_be_mapped_is_refused(text: str, why: str) -> None:
    with pytest.raises(JaasError, match=why):
        parse_jaas(text)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("'se same'", "se same"),
        ("'it\\'s'", "it's"),
        ('"it\'s"', "it's"),
        ("'say \"x\"'", 'say "x"'),
        ("plain", "plain"),
    ],
)
def test_either_quote_encloses_a_value_as_in_java(value: str, read: str) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = parse_jaas(f"{module} required username='alice' password={value};")
    assert (login.username, login.password) == ("alice", read)


# -- mapping -----------------------------------------------------------------------------------------------


def test_nothing_said_is_plaintext(tmp_path: Path) -> None:
    config = _load(tmp_path, "bootstrap.servers=elsewhere:9092\nclient.id=me\nrequest.timeout.ms=2500\n")
    assert config.kafka_python() == {"security_protocol": "PLAINTEXT"}
    assert (config.client_id, config.request_timeout_s) == ("me", 2.5)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_and_a_password_reach_the_client(tmp_path: Path, mechanism: str) -> None:
    jaas = PLAIN if mechanism == "PLAIN" else PLAIN.replace("plain.Plain", "scram.Scram")
    config = _load(tmp_path, f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n")
    found = config.kafka_python()
    assert (found["sasl_mechanism"], found["sasl_plain_username"]) == (mechanism, "alice")
    assert found["sasl_plain_password"] == PASSWORD


def test_no_password_is_ever_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture, ca: Certified) -> None:
    caplog.set_level(logging.DEBUG)
    client = signed(ca, "client")
    text = (
        f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN}\n"
        f"ssl.keystore.key={one_line(client.key_pem())}\nssl.keystore.certificate.chain={one_line(client.pem)}\n"
    )
    config = _load(tmp_path, text)
    logging.getLogger("test").debug("%s %s", config, config.kafka_python())
    secret = client.key_pem().splitlines()[1]
    assert "sesame" not in caplog.text and secret not in caplog.text
    assert "[hidden]" in caplog.text
    for broken in (
        "sasl.mechanism=SCRAM-SHA-256",
        "sasl.jaas.config=x password=sesame",
        "ssl.key.password=sesame\nx=y",
    ):
        told = "\n".join(_problems(tmp_path, text + broken))
        assert told and "sesame" not in told and secret not in told


@pytest.mark.parametrize("kind", ["pem file", "pem value", "pkcs12 said", "pkcs12 not said"])
def test_the_certificates_reach_the_client_and_a_server_believes_them(tmp_path: Path, ca: Certified, kind: str) -> None:
    client, server = signed(ca, "client"), signed(ca, "server", ["127.0.0.1"])
    if kind == "pem file":
        (tmp_path / "trust.pem").write_text(ca.pem)
        (tmp_path / "key.pem").write_text(client.key_pem("k3y") + client.pem)
        text = (
            f"ssl.truststore.type=PEM\nssl.truststore.location={tmp_path}/trust.pem\nssl.keystore.type=PEM\n"
            f"ssl.keystore.location={tmp_path}/key.pem\nssl.key.password=k3y\n"
        )
    elif kind == "pem value":
        text = (
            f"ssl.truststore.type=PEM\nssl.truststore.certificates={one_line(ca.pem)}\nssl.keystore.type=PEM\n"
            f"ssl.keystore.certificate.chain={one_line(client.pem)}\nssl.keystore.key={one_line(client.key_pem())}\n"
        )
    else:
        (tmp_path / "trust.p12").write_bytes(ca.pkcs12("tr", with_key=False))
        (tmp_path / "key.p12").write_bytes(client.pkcs12("st", with_key=True))
        said = "ssl.truststore.type=PKCS12\nssl.keystore.type=pkcs12\n" if kind == "pkcs12 said" else ""
        text = said + (
            f"ssl.truststore.location={tmp_path}/trust.p12\nssl.truststore.password=tr\n"
            f"ssl.keystore.location={tmp_path}/key.p12\nssl.keystore.password=st\n"
        )
    config = _load(tmp_path, "security.protocol=SSL\n" + text)
    assert _shake_hands(config, server, ca, tmp_path) == "client"


def test_a_server_of_another_name_is_refused_unless_the_check_is_off(tmp_path: Path, ca: Certified) -> None:
    server = signed(ca, "server", ["127.0.0.9"])
    text = f"security.protocol=SSL\nssl.truststore.certificates={one_line(ca.pem)}\n"
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        _shake_hands(_load(tmp_path, text), server, ca, tmp_path)
    config = _load(tmp_path, text + "ssl.endpoint.identification.algorithm=\n")
    assert _shake_hands(config, server, ca, tmp_path) is None


def _shake_hands(config: CommandConfig, server: Certified, ca: Certified, folder: Path) -> str | None:
    """Connect to a TLS server that asks for a certificate; returns the name on it, as the server saw it."""
    (folder / "server.pem").write_text(server.key_pem() + server.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(cadata=ca.pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    seen: list[str | None] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as secured:
                subject: dict[str, str] = dict(
                    pair for part in (secured.getpeercert() or {}).get("subject", ()) for pair in part
                )  # type: ignore[union-attr, misc]
                seen.append(subject.get("commonName"))
                secured.sendall(b"x")
        except ssl.SSLError:
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname()) as plain,
                config.kafka_python()["ssl_context"].wrap_socket(plain, server_hostname="127.0.0.1") as secured,
            ):
                assert secured.recv(1) == b"x"
        finally:
            thread.join()
    return seen[0]


# -- refusals ----------------------------------------------------------------------------------------------


def test_everything_that_cannot_be_mapped_is_named_with_file_and_line(tmp_path: Path) -> None:
    text = (
        "# admin\nsecurity.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        "ssl.cipher.suites=X\nssl.enabled.protocols=TLSv1.1\nclient.id=${file:/etc/x:id}\nrequest.timeout.ms=soon\n"
    )
    leave = "cannot be mapped to the Python clients; leave it out if it does not matter here"
    assert _problems(tmp_path, text) == [
        f"client.properties:4: sasl.kerberos.service.name: {leave}",
        f"client.properties:5: ssl.cipher.suites: {leave}",
        "client.properties:6: ssl.enabled.protocols: the Python clients speak TLS 1.2 and 1.3; leave it out, or write "
        "TLSv1.2,TLSv1.3",
        "client.properties:7: client.id: values from a config provider are not supported; write the value itself",
        "client.properties:3: sasl.mechanism: 'GSSAPI' is not supported; supported are PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512",
        "client.properties: sasl.jaas.config: is missing; PLAIN needs a user and a password",
        "client.properties:8: request.timeout.ms: 'soon' is not a number of milliseconds above 0",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("security.protocol=SSLv3", "client.properties:1: security.protocol: 'SSLv3' is not supported; supported are "),
        ("security.protocol=SASL_SSL", "client.properties: sasl.mechanism: is missing, so Java would take GSSAPI"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={PLAIN}",
            "client.properties:3: sasl.jaas.config: is a login for PLAIN, not for SCRAM-SHA-512",
        ),
        (
            "security.protocol=SSL\nssl.truststore.certificates=nothing",
            "client.properties:2: ssl.truststore.certificates: its value: holds no PEM certificate",
        ),
        (
            "security.protocol=SSL\nssl.truststore.location=/nowhere/x.p12",
            "client.properties:2: ssl.truststore.location: /nowhere/x.p12: No such file or directory",
        ),
        (
            "security.protocol=SSL\nssl.keystore.key=x",
            "client.properties:2: ssl.keystore.key: and ssl.keystore.certificate.chain belong together",
        ),
        (
            "ssl.endpoint.identification.algorithm=none",
            "client.properties:1: ssl.endpoint.identification.algorithm: must be https, or nothing",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_named(tmp_path: Path, text: str, problem: str) -> None:
    [told] = _problems(tmp_path, text)
    assert told.startswith(problem)


def test_stores_that_cannot_be_read_say_why(tmp_path: Path, ca: Certified) -> None:
    client = signed(ca, "client")
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    (tmp_path / "key.p12").write_bytes(client.pkcs12("right", with_key=True))
    (tmp_path / "key.pem").write_text(client.key_pem("right") + client.pem)
    begin = "security.protocol=SSL\n"

    def told(rest: str) -> str:
        [problem] = _problems(tmp_path, begin + rest)
        return problem

    assert (
        "is a JKS store, which only Java reads; convert it with `keytool -importkeystore -srckeystore trust.jks "
        "-destkeystore trust.p12 -deststoretype PKCS12` and name that"
    ) in told(f"ssl.truststore.location={tmp_path}/trust.jks")
    wrong = f"ssl.keystore.location={tmp_path}/key.p12\nssl.keystore.password=wrong"
    assert told(wrong).endswith("key.p12: is no PKCS #12 store, or its password is another")
    assert told(f"ssl.keystore.type=PEM\nssl.keystore.location={tmp_path}/key.p12").endswith(
        "is said to be PEM but is not PEM"
    )
    pem = f"ssl.keystore.type=PEM\nssl.keystore.location={tmp_path}/key.pem"
    assert told(pem).endswith("its private key is encrypted; give ssl.key.password")
    assert told(f"{pem}\nssl.key.password=wrong").endswith(
        "its private key cannot be read, or ssl.key.password is not its own"
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandConfigError, match=r"none\.properties: No such file"):
        CommandConfig.load(tmp_path / "none.properties")


def test_every_mapped_property_is_known_to_the_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
    assert [name for name in MAPPED if f"`{name}`" not in text] == []
