"""A proxy in front of MinIO that answers a share of the requests of some operations with an error. Runs on a host.

Standard library only. Arguments: the port to listen on, MinIO's port, and the file with the rules. It reads the rules
for every request: a JSON list of objects with `operations`, `status` (500, 503 or 0 for no answer) and `share_ppm`.
Each connection carries one request: the proxy asks the server to close it after the answer.
"""

import asyncio
import contextlib
import json
import random
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

HEAD_BYTES = 64 * 1024
DRAIN_BYTES = 64 * 1024 * 1024
SILENT_S = 120.0
CODES = {500: "InternalError", 503: "SlowDown"}


def operation(method: str, target: str) -> str:
    """Return put, get, delete or list for a request in path style; empty for anything else."""
    url = urlsplit(target)
    query = parse_qs(url.query, keep_blank_values=True)
    bucket, _, key = url.path.lstrip("/").partition("/")
    if bucket == "minio":
        return ""
    if method == "DELETE" or (method == "POST" and "delete" in query):
        return "delete" if key or "delete" in query else ""
    if method in ("PUT", "POST"):
        return "put" if key else ""
    if method in ("GET", "HEAD"):
        return "get" if key else ("list" if method == "GET" else "")
    return ""


def parse_head(head: bytes) -> "tuple[str, str, list[tuple[str, str]]]":
    """Return the method, the target and the headers of a request. Raise ValueError for anything else."""
    lines = head.decode("latin-1").split("\r\n")
    method, target, _version = lines[0].split(" ")
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.append((name.strip(), value.strip()))
    return method, target, headers


def forwarded(head: bytes) -> bytes:
    """Return the request's head for the server: as it was, but the connection closes after the answer."""
    lines = head.rstrip(b"\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([*kept, b"Connection: close"]) + b"\r\n\r\n"


def refusal(status: int) -> bytes:
    """Return an answer of S3 with this status."""
    body = f'<?xml version="1.0"?><Error><Code>{CODES[status]}</Code><Message>injected fault</Message></Error>'.encode()
    head = f"HTTP/1.1 {status} {CODES[status]}\r\nContent-Type: application/xml\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def status_for(rules: "list[dict[str, object]]", what: str, draw: "random.Random") -> "int | None":
    """Return the status of the first rule that takes this request; None: the request passes."""
    for rule in rules:
        operations, share, status = rule["operations"], rule["share_ppm"], rule["status"]
        assert isinstance(operations, list) and isinstance(share, int) and isinstance(status, int)
        if what in operations and draw.random() * 1e6 < share:
            return status
    return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while block := await reader.read(65536):
        writer.write(block)
        await writer.drain()


async def _drop(reader: asyncio.StreamReader) -> None:
    """Read and drop what a client sends until it closes the connection."""
    while await reader.read(65536):
        pass


async def _refuse(
    status: int, headers: "dict[str, str]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    if not status:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_drop(reader), SILENT_S)
        return
    if "100-continue" not in headers.get("expect", "").lower():
        # A client that is still sending would see a broken connection instead of the answer.
        left = min(int(headers.get("content-length", "0") or 0), DRAIN_BYTES)
        while left > 0 and (block := await reader.read(min(left, 65536))):
            left -= len(block)
    writer.write(refusal(status))
    await writer.drain()


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, rules: str, draw: random.Random
) -> None:
    upstream = None
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = parse_head(head)
        status = status_for(json.loads(Path(rules).read_text(encoding="utf-8")), operation(method, target), draw)
        if status is not None:
            await _refuse(status, {name.lower(): value for name, value in headers}, reader, writer)
            return
        answers, upstream = await asyncio.open_connection("127.0.0.1", port)
        upstream.write(forwarded(head))
        sending = asyncio.ensure_future(_copy(reader, upstream))
        try:
            await _copy(answers, writer)
        finally:
            sending.cancel()
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return  # the client or the server closed the connection, or it was no HTTP: there is nothing to answer
    finally:
        writer.close()
        if upstream is not None:
            upstream.close()


async def _listen(listen: int, port: int, rules: str) -> None:
    draw = random.Random(1)
    server = await asyncio.start_server(
        lambda reader, writer: _serve(reader, writer, port, rules, draw), "0.0.0.0", listen, limit=HEAD_BYTES
    )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_listen(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
