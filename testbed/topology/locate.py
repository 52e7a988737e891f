"""YAML text → plain values, and where each field stands. Reads hostile text without harm.

PyYAML's composer gives nodes with marks; this module turns them into values itself, because the ready
constructors forget the marks, keep the last of two equal keys without a word, and expand aliases without a
limit. Scalars follow YAML 1.2's core schema, as editors do: only true and false are booleans, and 12:30 is
text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from testbed.topology.problems import Path, Problem, TopologyError, field_name, show

MAX_BYTES = 2**20
MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_TEXT = 20_000

_NOT_TEXT = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NULL = ("", "~", "null", "Null", "NULL")
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class RawFloat(float):
    """A float that remembers how it was written (4.10 is not 4.1)."""

    text: str

    def __new__(cls, text: str) -> "RawFloat":
        """Parse `text` as YAML's core schema does."""
        self = super().__new__(cls, text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@dataclass
class Located:
    """A document's values, its places, and what was already wrong while reading it."""

    file: str
    values: Any = None
    problems: list[Problem] = field(default_factory=list)
    _keys: dict[Path, yaml.Mark] = field(default_factory=dict)
    _values: dict[Path, yaml.Mark] = field(default_factory=dict)

    def problem(self, path: Path, message: str, at_key: bool = False) -> Problem:
        """A problem at this field, or at the nearest enclosing one that is in the text."""
        exact = self._keys.get(path) if at_key else self._values.get(path)
        enclosing = (
            places[path[:end]]
            for end in range(len(path), -1, -1)
            for places in (self._keys, self._values)
            if path[:end] in places
        )
        mark = exact or next(enclosing, None)
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
        return Problem(self.file, line, column, field_name(path), message)


def locate(text: str, file: str) -> Located:
    """Read one YAML document. Raises TopologyError when the text as a whole cannot be read."""
    located = Located(file)
    root = _compose(text, file)
    located.values = _Reader(located).value(root, (), 0)
    return located


def _compose(text: str, file: str) -> yaml.Node:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        _refuse(file, text, 0, f"larger than {MAX_BYTES} bytes; a topology is a page of text")
    text = text.removeprefix("\ufeff")
    unreadable = _NOT_TEXT.search(text)
    if unreadable:
        code = f"U+{ord(unreadable[0]):04X}"
        _refuse(
            file,
            text,
            unreadable.start(),
            f"the character {code} is not text; a topology is a YAML file in UTF-8",
        )
    try:
        _measure(text, file)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        index = mark.index if mark is not None else 0
        _refuse(file, text, min(index, len(text)), f"not valid YAML: {_said(error)}")
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        _refuse(file, text, 0, f"not valid YAML: {show(str(error))}")
    if not isinstance(node, yaml.Node):
        _refuse(file, text, 0, "the file is empty; a topology needs at least name and hosts")
    return node


def _said(error: yaml.MarkedYAMLError) -> str:
    said = show(error.problem or error.context or "it cannot be read")
    context = f" ({error.context})" if error.context and error.problem else ""
    if "'\\t'" in said:
        return "a tab where YAML allows only spaces; indent with spaces"
    if "undefined alias" in said:
        return f"{said}; define it with &name first"
    return said + context


def _measure(text: str, file: str) -> None:
    """Refuse what would be dear or dangerous to build, from the flat stream of events."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        at = event.start_mark.index if event.start_mark else 0
        if count >= MAX_NODES:
            _refuse(file, text, at, f"more than {MAX_NODES} values; a topology is a page of text")
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                _refuse(file, text, at, "a second document starts here (---); allowed: one topology in a file")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                _refuse(file, text, at, f"nested deeper than {MAX_DEPTH} levels; a topology needs six")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            _refuse(
                file,
                text,
                at,
                f"the tag {show(shown)} is not used here; write the plain value, in quotes if it is text",
            )


def _refuse(file: str, text: str, index: int, message: str) -> NoReturn:
    before = text[:index].replace("\r\n", "\n").replace("\r", "\n")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    raise TopologyError([Problem(file, line, column, "", message)])


class _Reader:
    """Builds values from nodes, with a budget, because one alias may stand for very many nodes."""

    def __init__(self, located: Located) -> None:
        self._located = located
        self._open: list[yaml.Node] = []
        self._budget = MAX_NODES

    def value(self, node: yaml.Node, path: Path, depth: int) -> Any:
        located = self._located
        # A block starts at its first child; what is wrong with the whole of it is better told at its key.
        block = isinstance(node, yaml.CollectionNode) and not node.flow_style
        located._values[path] = located._keys.get(path, node.start_mark) if block else node.start_mark
        self._budget -= 1
        if self._budget < 0:
            raise TopologyError(
                [located.problem(path[:6], f"aliases expand to more than {MAX_NODES} values; write them out")]
            )
        if any(node is parent for parent in self._open):
            raise TopologyError([located.problem(path[:6], "this alias contains itself; write the values out")])
        if depth > MAX_DEPTH:
            message = f"aliases nest deeper than {MAX_DEPTH} levels; a topology needs six"
            raise TopologyError([located.problem(path[:6], message)])
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
            assert isinstance(node, yaml.MappingNode)
            return dict(self._pairs(node, path, depth))
        finally:
            self._open.pop()

    def _pairs(self, node: yaml.MappingNode, path: Path, depth: int) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._wrong(key_node, path, "a list or mapping is used as a key; allowed: a name")
                continue
            key = key_node.value
            here = (*path, key)
            if key == "<<" and key_node.style is None:
                self._wrong(
                    key_node,
                    here,
                    "merge keys are not used here; what hosts share stands in defaults or roles",
                )
            elif key in first:
                self._wrong(key_node, here, f"given twice, first in line {first[key]}; allowed: once")
            else:
                first[key] = key_node.start_mark.line + 1
                self._located._keys[here] = key_node.start_mark
                yield key, self.value(value_node, here, depth + 1)

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text: str = node.value
        if len(text) > MAX_TEXT:
            self._wrong(node, path, f"{len(text)} characters of text; allowed: {MAX_TEXT}")
            return text[:MAX_TEXT]
        if _NOT_TEXT.search(text):  # only through an escape such as "\0" or "\ud800"
            self._wrong(node, path, f"{show(text)} has a character in it that is not text; allowed: printable text")
            return _NOT_TEXT.sub("", text)
        return text if node.style is not None else _plain(text)

    def _wrong(self, node: yaml.Node, path: Path, message: str) -> None:
        mark = node.start_mark
        self._located.problems.append(
            Problem(self._located.file, mark.line + 1, mark.column + 1, field_name(path), message)
        )


def _plain(text: str) -> Any:
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text) and len(text) <= 30:
        return int(text)
    return RawFloat(text) if _FLOAT.fullmatch(text) else text
