"""TLS and a login over real sockets, to a broker that knows a few answers: what is refused is told as what it is."""

import ssl
import time
from contextlib import closing

import pytest
from kafka.net.transport import KafkaSSLTransport
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from testbed.kafka.command_config import CommandConfig
from testbed.kafka.connection import Connection
from testbed.kafka.errors import KafkaError, UnreachableError
from tests.fakes import broker as plain
from tests.kafka.certificates import authority, one_line, signed

HANDSHAKE, AUTHENTICATE = 17, 36


class SecureBroker(plain.FakeBroker):
    """Speaks TLS, and lets in alice with her password."""

    def __init__(self, context):
        self._context = context
        self.mechanisms = ["PLAIN"]
        super().__init__(1, {})

    def _answer(self, connection):
        try:
            super()._answer(self._context.wrap_socket(connection, server_side=True))
        except (ssl.SSLError, OSError):
            connection.close()

    def _response(self, key):
        if key == HANDSHAKE:
            return SaslHandshakeResponse(error_code=0, mechanisms=self.mechanisms)
        return super()._response(key)

    def _reply(self, key, request):
        if key != AUTHENTICATE:
            return self._response(key)
        code = 0 if b"\0alice\0open sesame" in request else 58
        why = "Authentication failed: Invalid username or password" if code else None
        return SaslAuthenticateResponse(error_code=code, error_message=why, auth_bytes=b"", session_lifetime_ms=0)


@pytest.fixture(scope="module")
def ca():
    return authority()


@pytest.fixture
def broker(ca, tmp_path, monkeypatch):
    monkeypatch.setattr(plain, "VERSIONS", plain.VERSIONS | {HANDSHAKE: (1, 1), AUTHENTICATE: (0, 1)})
    server = signed(ca, "server", ["127.0.0.1"])
    (tmp_path / "server.pem").write_text(server.key_pem() + server.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    made = SecureBroker(context)
    yield made
    made.stop()


@pytest.fixture
def config(ca, tmp_path):
    def config(password="open sesame", trust=ca):
        path = tmp_path / "client.properties"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        path.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.certificates={one_line(trust.pem)}\n"
            f'sasl.jaas.config={module} required username="alice" password="{password}";\n'
        )
        return CommandConfig.load(path)

    return config


@pytest.fixture
def connect(broker, config):
    return lambda **words: Connection(f"127.0.0.1:{broker.port}", 2.0, "test", config(**words))


def test_with_the_password_and_the_certificate_one_is_let_in(connect):
    with closing(connect()) as connection:
        assert [node.node_id for node in connection.client._manager.cluster.brokers()] == [1]


def test_a_wrong_password_is_told_at_once_and_not_the_password(connect, caplog):
    with pytest.raises(KafkaError, match=r"^log in to the cluster at .*: SASL_AUTHENTICATION_FAILED") as refused:
        connect(password="open barley")
    assert str(refused.value).endswith("FAILED (Authentication failed: Invalid username or password)")
    assert "barley" not in str(refused.value) + caplog.text


def test_a_refusal_that_is_read_together_with_the_connections_end_is_reported(connect, broker, monkeypatch):
    broker.last = AUTHENTICATE

    def late(transport):
        time.sleep(0.1)  # a client on a busy machine: both have arrived before it reads
        return received(transport)

    received = KafkaSSLTransport._sock_recv
    monkeypatch.setattr(KafkaSSLTransport, "_sock_recv", late)
    with pytest.raises(KafkaError, match="SASL_AUTHENTICATION_FAILED"):
        connect(password="open barley")


def test_a_mechanism_that_the_broker_does_not_have_is_told_with_those_that_it_has(connect, broker):
    broker.mechanisms = ["SCRAM-SHA-512"]
    with pytest.raises(KafkaError, match=r"UNSUPPORTED_SASL_MECHANISM .*Enabled mechanisms: \['SCRAM-SHA-512'\]"):
        connect()


def test_a_certificate_that_is_not_trusted_is_told(connect):
    with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(trust=authority("another"))


def test_without_a_command_config_the_way_to_it_is_told(broker):
    with pytest.raises(
        UnreachableError,
        match=r"not answer as a PLAINTEXT listener; .*see --command-config",
    ):
        Connection(f"127.0.0.1:{broker.port}", 2, "test")
