"""The machine's canary readings of a run: `canaries/<run_id>.json`, canary → reading, each in its own unit.

The file is not part of the run: the next reading completes it. It is written before the run is ingested.
"""

import json
import math
from collections.abc import Mapping

from results.contract.store import Store, StoreError
from results.contract.untrusted import parse_json

FOLDER = "canaries"


def path_of(run_id: str) -> str:
    """Return the path of the file of the readings, from the store's root."""
    return f"{FOLDER}/{run_id}.json"


def parse(data: bytes, source: str) -> Mapping[str, float]:
    """Return canary → reading. Raise StoreError, naming `source`, when the content is no readings."""
    try:
        read = {str(name): float(value) for name, value in parse_json(data).items()}
    except (ValueError, AttributeError, TypeError, OverflowError) as error:
        raise StoreError(f"{source}: not a canary's readings: {error}") from error
    if wild := [name for name, value in read.items() if not math.isfinite(value)]:
        raise StoreError(f"{source}: not a canary's readings: {', '.join(wild)} is no finite number")
    return read


def canary_bytes(store: Store, run_id: str) -> bytes | None:
    """Return the readings as they are stored; None where no canary was read with the run."""
    try:
        return bytes(store.files.read(path_of(run_id)))
    except FileNotFoundError:
        return None


def canaries(store: Store, run_id: str) -> Mapping[str, float]:
    """Return the run's canary readings; empty when there are none. Raise StoreError when they are damaged."""
    data = canary_bytes(store, run_id)
    return {} if data is None else parse(data, f"{store.location}/{path_of(run_id)}")


def to_bytes(read: Mapping[str, float]) -> bytes:
    """Return the readings as bytes to store."""
    return json.dumps(dict(read)).encode()


def put_canaries(store: Store, run_id: str, read: Mapping[str, float]) -> None:
    """Write the machine's canary readings of a run."""
    store.files.put(path_of(run_id), to_bytes(read))
