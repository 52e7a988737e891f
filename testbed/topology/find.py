"""Topology files: load one by its path, or find one of the ready topologies by its name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.form import validate
from testbed.suggestions import did_you_mean
from testbed.topology.file_form import KIND, TopologyForm
from testbed.topology.model import Topology
from testbed.topology.resolve import resolve
from testbed.yaml_document import Document, is_file, parse, read

READY = Path(__file__).parents[2] / "topologies"


def load(path: str | Path) -> Topology:
    """Return the topology in this file. Raise TopologyError with every mistake and its line."""
    return _topology(read(path, KIND), Path(path).absolute().parent)


def loads(text: str, source: str = "<string>") -> Topology:
    """Return the topology in this YAML text. Raise TopologyError with every mistake and its line."""
    return _topology(parse(text, source, KIND), Path.cwd())


def load_document(document: Mapping[str, Any], source: str = "<document>") -> Topology:
    """Return the topology in a dict such as `to_document()` returns. Raise TopologyError."""
    values = dict(document) if isinstance(document, Mapping) else document
    return _topology(Document(source, KIND, values), Path.cwd())


def _topology(document: Document, folder: Path) -> Topology:
    return resolve(validate(document, TopologyForm), document, folder)


def ready() -> list[str]:
    """Return the names of the ready topologies."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def find(text: str) -> Topology:
    """Return the topology that `text` names: an existing file, else a ready topology, with or without `.yaml`."""
    name = text.removesuffix(".yaml")
    if name in ready() and not is_file(text):
        return _ready(name)
    if "/" in text or text.endswith((".yaml", ".yml")) or is_file(text):
        return load(text)
    raise UsageError(f"no topology {text!r}: give a file, or one of {', '.join(ready())}{did_you_mean(text, ready())}")


@cache
def _ready(name: str) -> Topology:
    # A list of cases asks for the same one again and again; its file does not change.
    return load(READY / f"{name}.yaml")
