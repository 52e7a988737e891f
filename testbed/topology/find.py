"""A topology by its file, or one of the ready ones by its name."""

from pathlib import Path

from testbed.errors import UsageError
from testbed.meant import did_you_mean
from testbed.topology.load import load
from testbed.topology.model import Topology

READY = Path(__file__).parents[2] / "topologies"


def ready() -> list[str]:
    """The names of the ready topologies."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def find(text: str) -> Topology:
    """The topology `text` means: a file when there is one, else a ready topology, with or without its `.yaml`."""
    name = text.removesuffix(".yaml")
    if name in ready() and not Path(text).is_file():
        return load(READY / f"{name}.yaml")
    if "/" in text or text.endswith((".yaml", ".yml")) or Path(text).is_file():
        return load(text)
    raise UsageError(f"no topology {text!r}: give a file, or one of {', '.join(ready())}{did_you_mean(text, ready())}")
