"""The programs that faults run on hosts, on this machine's loopback."""

import asyncio
import contextlib
import http.client
import http.server
import json
import random
import socket
import subprocess
import sys
import threading
import time
from importlib import resources
from ipaddress import IPv4Address

import pytest

from testbed.faults.catalogue.client_stampede import count_established
from testbed.faults.programs import stampede, store_proxy
from testbed.wait import wait_until

PROGRAMS = resources.files("testbed.faults.programs")


@pytest.mark.parametrize(
    ("method", "target", "operation"),
    [
        ("PUT", "/bucket/key", "put"),
        ("PUT", "/bucket/key?partNumber=1&uploadId=x", "put"),
        ("POST", "/bucket/a/b?uploads", "put"),
        ("GET", "/bucket/key", "get"),
        ("HEAD", "/bucket/a/b", "get"),
        ("DELETE", "/bucket/key", "delete"),
        ("POST", "/bucket?delete", "delete"),
        ("GET", "/bucket?list-type=2&prefix=a", "list"),
        ("GET", "/", "list"),
        ("HEAD", "/bucket", ""),
        ("PUT", "/bucket", ""),
        ("DELETE", "/bucket", ""),
        ("GET", "/minio/health/cluster", ""),
    ],
)
def test_requests_are_told_apart(method, target, operation):
    assert store_proxy.operation(method, target) == operation


def test_a_share_of_the_requests_fails():
    rules = [{"operations": ["put"], "status": 503, "share_ppm": 250_000}]
    draw = random.Random(7)
    failed = sum(store_proxy.status_for(rules, "put", draw) == 503 for _ in range(4000))
    assert 800 < failed < 1200
    assert store_proxy.status_for(rules, "get", draw) is None


class _Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer(b"object")

    def do_PUT(self):
        self._answer(str(len(self.rfile.read(int(self.headers["Content-Length"])))).encode())

    def _answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):
        pass


@pytest.fixture
def proxy(tmp_path):
    """A proxy before a server: a function that sends a request, and the file with the rules."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    rules = tmp_path / "rules.json"
    rules.write_text("[]")
    command = [sys.executable, str(PROGRAMS / "store_proxy.py"), str(port), str(server.server_port), str(rules)]
    process = subprocess.Popen(command)

    def ask(method, target, body=None, timeout_s=5):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)) as connection:
            connection.request(method, target, body)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def listens():
        with contextlib.suppress(OSError):
            return ask("GET", "/bucket/key")[0] == 200
        return False

    wait_until(listens, 10, 0.05, "the proxy")
    yield ask, rules
    process.kill()
    process.wait()
    server.shutdown()
    server.server_close()


def test_what_no_rule_takes_passes_and_the_rest_fails(proxy):
    ask, rules = proxy
    big = bytes(3_000_000)
    assert ask("PUT", "/bucket/key", big) == (200, b"3000000")
    rules.write_text(json.dumps([{"operations": ["put"], "status": 503, "share_ppm": 1_000_000}]))
    status, body = ask("PUT", "/bucket/key", big)
    assert (status, b"<Code>SlowDown</Code>" in body) == (503, True)
    assert ask("GET", "/bucket/key") == (200, b"object")
    rules.write_text(json.dumps([{"operations": ["get"], "status": 0, "share_ppm": 1_000_000}]))
    with pytest.raises(TimeoutError):
        ask("GET", "/bucket/key", timeout_s=0.3)
    assert ask("PUT", "/bucket/key", b"x") == (200, b"1")


def test_a_request_without_an_answer_is_dropped_in_blocks_and_ends_in_time(monkeypatch):
    class Client:
        """Sends an upload without an end; `most` is the largest read."""

        most, sent = 0, 0

        async def read(self, size):
            assert size > 0, "it would hold the whole upload in memory"
            self.most, self.sent = max(self.most, size), self.sent + size
            await asyncio.sleep(0.001)
            return bytes(size)

    client = Client()
    monkeypatch.setattr(store_proxy, "SILENT_S", 0.1)
    asyncio.run(asyncio.wait_for(store_proxy._refuse(0, {}, client, None), 5))
    assert client.sent > client.most
    assert client.most <= 65536


def test_what_is_no_http_ends_its_connection_and_nothing_else(proxy):
    ask, _rules = proxy
    port = ask.__closure__[0].cell_contents
    for garbage in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"A" * 100_000):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection, contextlib.suppress(OSError):
            connection.sendall(garbage)
            assert connection.recv(100) == b""
    assert ask("GET", "/bucket/key") == (200, b"object")


def test_a_stampede_keeps_its_connections_sends_requests_and_ends_by_itself():
    kept, received = [], []
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def read(connection):
        received.append(len(connection.recv(4096)))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _address = listener.accept()
                kept.append(connection)
                threading.Thread(target=read, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    port = listener.getsockname()[1]
    job = {
        "targets": [["127.0.0.1", port]],
        "connections": 20,
        "requests_per_s": 20,
        "until": time.time() + 1.5,
        "lasts_s": 60,
    }
    begun = time.monotonic()
    process = subprocess.Popen([sys.executable, str(PROGRAMS / "stampede.py"), json.dumps([job])])
    wait_until(lambda: len(received) >= 20, 10, 0.02, "a request on each connection")
    assert process.wait(15) == 0
    listener.close()
    assert time.monotonic() - begun < 10
    assert len(kept) == 20
    assert set(received) == {len(stampede.request(0))}


def test_connections_are_counted_in_the_kernels_table():
    table = """\
  sl  local_address rem_address   st tx_queue
   0: 0B0113C6:2384 00000000:0000 0A 00000000
   1: 0B0113C6:2384 0D0113C6:A001 01 00000000
   2: 0B0113C6:2384 0D0113C6:A002 01 00000000
   3: 0B0113C6:2385 0D0113C6:A003 01 00000000
   4: 0B0113C6:2384 0C0113C6:A004 01 00000000
   5: 0B0113C6:2384 0D0113C6:A005 06 00000000
"""
    assert count_established(table, IPv4Address("198.19.1.13"), 9092) == 2
