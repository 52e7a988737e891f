import http.server
import io
import json
import socket
import socketserver
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.owner import Owner
from testbed.paths import state_dir
from testbed.software.engine import Container, EngineError, EngineSocket, Trouble


class FakeEngine(http.server.BaseHTTPRequestHandler):
    """Enough of the engine's interface; answers are looked up by method and path."""

    answers: dict[str, tuple[int, bytes]] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012
    bodies: list[bytes] = []  # noqa: RUF012

    def address_string(self) -> str:
        return "local"

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        self.bodies.append(self._body())
        status, body = self.answers.get(f"{self.command} {self.path.partition('?')[0]}", (200, b"{}"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = do_DELETE = _answer


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[tuple[type[FakeEngine], EngineSocket]]:
    class Handler(FakeEngine):
        answers: dict[str, tuple[int, bytes]] = {}  # noqa: RUF012
        asked: list[str] = []  # noqa: RUF012
        bodies: list[bytes] = []  # noqa: RUF012

    class Server(socketserver.ThreadingUnixStreamServer):
        def handle_error(self, request: object, client_address: object) -> None:
            if not isinstance(sys.exception(), ConnectionError):  # a client need not read an answer to its end
                raise AssertionError("the fake engine is broken") from sys.exception()

    server = Server(str(tmp_path / "sock"), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield Handler, EngineSocket(f"unix://{tmp_path / 'sock'}")
    server.shutdown()
    server.server_close()


def frame(text: str, stream: int = 1) -> bytes:
    return struct.pack(">B3xI", stream, len(text)) + text.encode()


def test_an_engine_that_answers(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    _, engine = fake
    engine.ping()


def test_an_image_is_found_or_not(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    handler, engine = fake
    handler.answers["GET /images/node:1/json"] = (200, b'{"Id": "sha256:12"}')
    handler.answers["GET /images/node:2/json"] = (404, b'{"message": "No such image"}')
    handler.answers["GET /images/node:3/json"] = (500, b'{"message": "disk on fire"}')
    assert engine.find_image("node:1") == "sha256:12"
    assert engine.find_image("node:2") is None
    with pytest.raises(EngineError, match="disk on fire"):
        engine.find_image("node:3")


def test_a_cache_that_the_engine_may_not_mount_is_named_with_the_remedy(
    fake: tuple[type[FakeEngine], EngineSocket], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such as that of Ubuntu's snap, for which hidden folders of a home do not exist."""
    handler, engine = fake
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = f"error while creating mount source path '{tmp_path}/testbed/kafka': mkdir {tmp_path}: permission denied"
    handler.answers["GET /images/node:1/json"] = (500, json.dumps({"message": said}).encode())
    handler.answers["GET /images/node:2/json"] = (500, b'{"message": "mkdir /var/lib/docker/x: permission denied"}')
    with pytest.raises(EngineError, match=r"may not read the cache \(error while .*; set XDG_CACHE_HOME to a folder"):
        engine.find_image("node:1")
    with pytest.raises(EngineError, match=r"^mkdir /var/lib/docker/x: permission denied$"):
        engine.find_image("node:2")


def test_labels_of_an_image(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    handler, engine = fake
    handler.answers["GET /images/node:1/json"] = (200, b'{"Id": "sha256:12", "Config": {"Labels": {"a": "b"}}}')
    handler.answers["GET /images/node:2/json"] = (200, b'{"Id": "sha256:12", "Config": {"Labels": null}}')
    assert engine.image_labels("node:1") == {"a": "b"}
    assert engine.image_labels("node:2") == {}


def test_an_import_sends_the_tar_and_reads_the_answer_to_its_end(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    handler, engine = fake
    engine.import_image(io.BytesIO(b"tar" * 100_000), "node:1", ("LABEL a=b",))
    assert handler.bodies == [b"tar" * 100_000]
    assert handler.asked == ["POST /images/create?fromSrc=-&repo=node%3A1&changes=LABEL+a%3Db"]
    handler.answers["POST /images/create"] = (200, b'{"status": "..."}\n{"error": "unexpected EOF"}\n')
    with pytest.raises(EngineError, match="unexpected EOF"):
        engine.import_image(io.BytesIO(b""), "node:1", ())


@pytest.mark.parametrize(
    ("reference", "query"),
    [
        ("node", "fromImage=node&tag=latest"),
        ("node:7", "fromImage=node&tag=7"),
        ("mirror:5000/node", "fromImage=mirror%3A5000%2Fnode&tag=latest"),
        ("mirror:5000/node:7", "fromImage=mirror%3A5000%2Fnode&tag=7"),
    ],
)
def test_a_pull_names_image_and_tag(fake: tuple[type[FakeEngine], EngineSocket], reference: str, query: str) -> None:
    handler, engine = fake
    engine.pull_image(reference)
    assert handler.asked == [f"POST /images/create?{query}"]


def test_a_container_is_removed_whatever_happens(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    handler, engine = fake
    handler.answers["POST /containers/create"] = (201, b'{"Id": "c1"}')
    with pytest.raises(ZeroDivisionError), engine.container({"Image": "x"}):
        raise ZeroDivisionError
    assert json.loads(handler.bodies[0]) == {"Image": "x"}
    assert handler.asked[-1] == "DELETE /containers/c1?force=1&v=1"


def test_a_container_that_does_not_start_is_removed_too(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    handler, engine = fake
    handler.answers["POST /containers/create"] = (201, b'{"Id": "c1"}')
    handler.answers["POST /containers/c1/start"] = (500, b'{"message": "no such mount"}')
    with pytest.raises(EngineError, match="no such mount"), engine.container({}):
        raise AssertionError("not reached")
    assert handler.asked[-1] == "DELETE /containers/c1?force=1&v=1"


def test_the_output_is_cut_into_lines_not_into_frames(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    handler, engine = fake
    handler.answers["POST /containers/create"] = (201, b'{"Id": "c1"}')
    framed = frame("one\ntw") + frame("o\n", 2) + frame("three")
    handler.answers["GET /containers/c1/logs"] = (200, framed)
    with engine.container({}) as container:
        assert list(container.output()) == ["one", "two", "three"]


def test_no_engine_installed_or_started(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no container engine at unix://") as caught:
        EngineSocket(f"unix://{tmp_path / 'absent'}").ping()
    assert caught.value.trouble is Trouble.ABSENT


def test_a_socket_that_nobody_listens_on(tmp_path: Path) -> None:
    path = tmp_path / "stale"
    socketserver.UnixStreamServer(str(path), FakeEngine).server_close()
    with pytest.raises(EngineError, match="nothing listens at unix://") as caught:
        EngineSocket(f"unix://{path}").ping()
    assert caught.value.trouble is Trouble.SILENT


def test_a_socket_this_user_may_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("testbed.software.engine._UnixConnection.connect", denied)
    with pytest.raises(EngineError, match=r"unix:///x: permission denied") as caught:
        EngineSocket("unix:///x").ping()
    assert caught.value.trouble is Trouble.DENIED


@pytest.mark.parametrize("address", ["tcp://build.example.org:2375", "ssh://me@there"])
def test_an_engine_on_another_machine_is_refused(address: str) -> None:
    with pytest.raises(EngineError, match="the engine must be on this machine"):
        EngineSocket(address).ping()


def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere.sock")
    assert EngineSocket.from_environment().address == "unix:///elsewhere.sock"
    monkeypatch.delenv("DOCKER_HOST")
    assert Path(EngineSocket.from_environment().address.removeprefix("unix://")) == Path("/var/run/docker.sock")


def test_a_container_that_does_not_end_in_time_is_an_error_of_the_engine(tmp_path: Path) -> None:
    """The engine sends the head of its answer at once, and the exit code when the container has ended."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "sock"))
    listener.listen()

    def answer() -> None:
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n")
        connection.recv(4096)
        connection.close()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    with pytest.raises(EngineError, match="timed out"):
        Container(EngineSocket(f"unix://{tmp_path / 'sock'}"), "c1").wait(0.1)
    thread.join()
    listener.close()


def test_each_container_of_a_command_names_its_process(fake: tuple[type[FakeEngine], EngineSocket]) -> None:
    handler, engine = fake
    handler.answers["POST /containers/create"] = (201, b'{"Id": "c1"}')
    with engine.files_of_image("sha256:1") as stream:
        stream.read()
    labels = json.loads(handler.bodies[0])["Labels"]
    assert labels["testbed.role"] == "files"
    owner = Owner.parse(labels["testbed.owner"])
    assert owner is not None
    assert owner.alive()
    assert labels["testbed.state"] == str(state_dir())
