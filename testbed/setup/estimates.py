"""How long each step took last time on this machine, so that the next estimate is its own."""

import json
from collections.abc import Mapping
from pathlib import Path

from results.contract import durable
from testbed.paths import cache_dir


def _file() -> Path:
    return cache_dir() / "durations.json"


def measured() -> dict[str, float]:
    """Seconds by step; empty when nothing was measured yet or the file cannot be read."""
    try:
        document = json.loads(_file().read_text(encoding="utf-8"))
        return {str(name): float(seconds) for name, seconds in document.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # an estimate is a courtesy: a damaged file is as good as none


def remember(durations_s: Mapping[str, float]) -> None:
    """Keep these, and of the others what was known before."""
    path = _file()
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {**measured(), **{name: round(seconds, 1) for name, seconds in durations_s.items()}}
    durable.write(path, json.dumps(document, indent=1, sort_keys=True))


def longest_chain_s(needs: Mapping[str, tuple[str, ...]], left_s: Mapping[str, float]) -> float:
    """Seconds until all steps in `left_s` are done, each after those it needs; steps not in it take none."""

    def until(name: str) -> float:
        return left_s.get(name, 0.0) + max((until(need) for need in needs.get(name, ())), default=0.0)

    return max((until(name) for name in left_s), default=0.0)
