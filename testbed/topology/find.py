"""A topology by its file, or one of the ready ones by its name."""

import difflib
from pathlib import Path

from testbed.errors import UsageError
from testbed.topology.load import load
from testbed.topology.model import Topology

READY = Path(__file__).parents[2] / "topologies"


def ready() -> list[str]:
    """The names of the ready topologies."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def find(text: str) -> Topology:
    """The topology `text` means: a path when it looks like one or exists, else a ready topology's name."""
    if "/" in text or text.endswith((".yaml", ".yml")) or Path(text).is_file():
        return load(text)
    if text in ready():
        return load(READY / f"{text}.yaml")
    near = difflib.get_close_matches(text, ready(), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(f"no topology {text!r}: give a file, or one of {', '.join(ready())}{meant}")
