"""What was read of the machine beside a run: `canaries/<run_id>.json`, canary → reading, in units of its own.

Not part of the run: it is known only once the next reading is there. It is kept before the run is ingested.
"""

import json
import math
from collections.abc import Mapping

from results.contract.store import Store, StoreError

FOLDER = "canaries"


def path_of(run_id: str) -> str:
    """Where a store keeps them, from its root."""
    return f"{FOLDER}/{run_id}.json"


def parse(data: bytes, source: str) -> Mapping[str, float]:
    """Canary → reading. Raises StoreError, naming `source`, when these are no readings."""
    try:
        read = {str(name): float(value) for name, value in json.loads(data).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise StoreError(f"{source}: not a canary's readings: {error}") from error
    if wild := [name for name, value in read.items() if not math.isfinite(value)]:
        raise StoreError(f"{source}: not a canary's readings: {', '.join(wild)} is no finite number")
    return read


def canary_bytes(store: Store, run_id: str) -> bytes | None:
    """As they are stored; None where nothing was read beside the run."""
    try:
        return bytes(store.files.read(path_of(run_id)))
    except FileNotFoundError:
        return None


def canaries(store: Store, run_id: str) -> Mapping[str, float]:
    """What was read beside the run; nothing where nothing was. Raises StoreError."""
    data = canary_bytes(store, run_id)
    return {} if data is None else parse(data, f"{store.location}/{path_of(run_id)}")


def to_bytes(read: Mapping[str, float]) -> bytes:
    """As they are stored."""
    return json.dumps(dict(read)).encode()


def put_canaries(store: Store, run_id: str, read: Mapping[str, float]) -> None:
    """Keep what was read of the machine beside a run."""
    store.files.put(path_of(run_id), to_bytes(read))
