"""The live view as a page: a server on this machine's loopback, which answers with the page and the latest readings."""

import http
import http.server
import json
import threading
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs, urlsplit

from results.report.render import render_live
from testbed.errors import UsageError
from testbed.runner.watch import Watch

LOOPBACK = "127.0.0.1"


def state_since(watch: Watch, since_us: int) -> dict[str, Any]:
    """Return the readings and the changes after an instant, µs since the epoch, as a JSON-able document."""
    return {
        "readings": [asdict(reading) for reading in list(watch.readings) if reading.at_us > since_us],
        "changes": [
            {"at_us": change.at_us, "clock": change.clock, "text": change.text}
            for change in list(watch.changes)
            if change.at_us > since_us
        ],
    }


class WatchPage:
    """The page of one watch. A context manager: the server ends with the block."""

    def __init__(self, watch: Watch, name: str, port: int = 0) -> None:
        """Raise `UsageError` when the port is taken."""
        body = render_live(name).encode()
        allowed: set[str] = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                # A page of another origin that resolves its name to the loopback address sends its own name here.
                if self.headers.get("Host") not in allowed:
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
            self._server = http.server.ThreadingHTTPServer((LOOPBACK, port), Handler)
        except OSError as error:
            raise UsageError(f"--port {port}: {error.strerror}") from error
        self._server.daemon_threads = True
        port = self._server.server_address[1]
        allowed |= {f"{LOOPBACK}:{port}", f"localhost:{port}"}
        self.url = f"http://{LOOPBACK}:{port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, name="watch page", daemon=True)

    def __enter__(self) -> "WatchPage":
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
