"""The live view as a page: a server on this machine's loopback, which answers with the page and the latest readings."""

import http
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs, urlsplit

from results.report.render import render_live
from testbed.errors import UsageError
from testbed.runner.watch import Watch

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
MOST_PORT = 65535


def state_since(watch: Watch, since_us: int) -> dict[str, Any]:
    """Return the readings and the changes after an instant, µs since the epoch, as a JSON-able document."""
    return {
        "readings": [asdict(reading) for reading in list(watch.readings) if reading.at_us > since_us],
        "changes": [asdict(each) | {"clock": each.clock} for each in list(watch.changes) if each.at_us > since_us],
    }


@contextmanager
def watch_page(watch: Watch, name: str, port: int = 0) -> Iterator[str]:
    """Serve the page of a watch until the block ends; yield its address. Raise `UsageError` when the port is taken."""
    if not 0 <= port <= MOST_PORT:
        raise UsageError(f"--port {port}: allowed are 1 to {MOST_PORT}, and 0 for a free one")
    body = render_live(name).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A page of another origin that resolves its name to the loopback address sends its own name here. The port
            # is another one behind `ssh -L`.
            if self.headers.get("Host", "").partition(":")[0] not in NAMES:
                self.send_error(http.HTTPStatus.FORBIDDEN)
                return
            asked = urlsplit(self.path)
            if asked.path == "/":
                self._answer(body, "text/html; charset=utf-8")
            elif asked.path == "/state":
                since = parse_qs(asked.query).get("since", ["0"])[0]
                since_us = int(since) if since.isdecimal() else 0
                self._answer(json.dumps(state_since(watch, since_us)).encode(), "application/json")
            else:
                self.send_error(http.HTTPStatus.NOT_FOUND)

        def _answer(self, content: bytes, kind: str) -> None:
            self.send_response(http.HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: object) -> None:
            """Write no line for a request."""

    try:
        server = http.server.ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; give another port, or leave --port out") from error
    server.daemon_threads = True
    port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, name="watch page", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
