"""Many clients at once: connections to brokers, and metadata requests on them, until a deadline. Runs on a host.

Standard library only. The one argument is a JSON list of jobs, each with `targets` (address and port), `connections`,
`requests_per_s` (on all connections together), `until` (seconds since the epoch) and `lasts_s`: the clients end at the
earlier of both, so that a clock that is set back does not prolong them.
"""

import asyncio
import json
import resource
import struct
import sys
import time

CONNECT_S = 10.0
TURN_S = 0.1
METADATA, VERSION = 3, 4
BODY = struct.pack(">ib", -1, 0)
"""All topics, and none is made."""


def request(correlation_id: int) -> bytes:
    """Return one Metadata request, as bytes on the wire."""
    client = b"stampede"
    head = struct.pack(">hhih", METADATA, VERSION, correlation_id, len(client)) + client
    return struct.pack(">i", len(head) + len(BODY)) + head + BODY


async def _discard(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


async def _one(host: str, port: int, interval_s: float, end: float) -> None:
    """Keep one connection and send requests on it; connect again when the broker closes it."""
    correlation_id = 0
    while time.monotonic() < end:
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_S)
        except (TimeoutError, OSError):
            await asyncio.sleep(TURN_S)
            continue
        reading = asyncio.ensure_future(_discard(reader))
        try:
            while time.monotonic() < end and not reading.done():
                writer.write(request(correlation_id))
                await writer.drain()
                correlation_id += 1
                await asyncio.wait([reading], timeout=min(interval_s, max(0.0, end - time.monotonic())))
        except OSError:
            pass  # the broker closed it: connect again
        finally:
            reading.cancel()
            writer.close()
        await asyncio.sleep(TURN_S)


async def _all(jobs: "list[dict[str, object]]") -> None:
    clients = []
    for job in jobs:
        targets, connections = job["targets"], job["connections"]
        rate, until, lasts_s = job["requests_per_s"], job["until"], job["lasts_s"]
        assert isinstance(targets, list) and isinstance(connections, int)
        assert isinstance(rate, (int, float)) and isinstance(until, (int, float))
        assert isinstance(lasts_s, (int, float))
        end = time.monotonic() + max(0.0, min(lasts_s, until - time.time()))
        for number in range(connections):
            host, port = targets[number % len(targets)]
            clients.append(_one(host, port, connections / rate, end))
    await asyncio.gather(*clients)


if __name__ == "__main__":
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard > 0 else 65536, hard))
    asyncio.run(_all(json.loads(sys.argv[1])))
