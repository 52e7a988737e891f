"""Files and documents → Topology. Whatever is wrong is told at once, and nothing but TopologyError is
raised."""

import stat
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from testbed.meant import did_you_mean
from testbed.topology.locate import MAX_BYTES, Located, locate
from testbed.topology.model import Topology
from testbed.topology.problems import Problem, TopologyError, show
from testbed.topology.resolve import automq, remote_storage, resolve
from testbed.topology.rules import broken_rules
from testbed.topology.salvage import salvage


def load(path: str | FilePath) -> Topology:
    """The topology in this file. Raises TopologyError with every mistake and its line."""
    file = FilePath(path)
    shown = str(path) if str(path).isprintable() else repr(str(path))
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            what = "a directory" if file.is_dir() else "not a regular file"
            raise _unreadable(shown, f"this is {what}; a topology is a YAML file")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _unreadable(shown, f"there is no such file{_neighbour(file)}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable(shown, f"it cannot be read: {reason}") from None
    return _build(locate(_decode(raw, shown), shown), file.absolute().parent)


def loads(text: str, source: str = "<string>") -> Topology:
    """The topology in this YAML text. Raises TopologyError with every mistake and its line."""
    return _build(locate(text, source))


def load_document(document: Mapping[str, Any], source: str = "<document>") -> Topology:
    """The topology in a plain dict of the files' form, such as `to_document()` gives. Raises
    TopologyError."""
    return _build(Located(source, dict(document) if isinstance(document, Mapping) else document))


def _build(located: Located, folder: FilePath | None = None) -> Topology:
    if not isinstance(located.values, dict):
        text = f"found {_kind(located.values)}, not a mapping; a topology starts with name: and hosts:"
        raise TopologyError([*located.problems, located.problem((), text)])
    form, problems, explains = salvage(located)
    if form is not None:
        folder = folder or FilePath.cwd()
        hosts, uplinks, broken = resolve(form, folder)
        remote, other = remote_storage(form, folder), automq(form, folder)
        broken += broken_rules(form.name, tuple(form.racks), hosts, uplinks, remote, other)
        problems += [
            located.problem(explains.original(b.path), explains.words(b.message)) for b in broken if not explains(b)
        ]
        if not problems:
            racks = tuple(form.racks)
            return Topology(form.name, hosts, racks, form.description, located.file, uplinks, remote, other)
    in_order = sorted(dict.fromkeys(problems), key=lambda p: (p.line or 0, p.column or 0))
    raise TopologyError(in_order)


def _decode(raw: bytes, shown: str) -> str:
    if len(raw) > MAX_BYTES:
        raise _unreadable(shown, f"it is larger than {MAX_BYTES} bytes; a topology is a page of text")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        text = f"byte 0x{raw[error.start]:02x} is not UTF-8; a topology is a YAML file in UTF-8"
        raise TopologyError([Problem(shown, line, column, "", text)]) from None


def _unreadable(shown: str, message: str) -> TopologyError:
    return TopologyError([Problem(shown, None, None, "", message)])


def _neighbour(file: FilePath) -> str:
    try:
        names = sorted(path.name for path in file.parent.glob("*.y*ml"))
    except OSError:
        return ""
    return did_you_mean(file.name, names, lambda name: file.parent / name)


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else f"only {show(value)}"
