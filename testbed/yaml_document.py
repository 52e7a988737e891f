"""YAML files: plain values from untrusted text, with the line and column of each. `testbed.form` uses them."""

import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from testbed.errors import UsageError
from testbed.suggestions import did_you_mean, show

MAX_BYTES = 2**20
MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_TEXT = 20_000

FieldPath = tuple[str | int, ...]
"""A place in a document: mapping keys and list indexes from the top, `("hosts", "b1", "nic", "rate")`."""


_NOT_TEXT = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NULL = ("", "~", "null", "Null", "NULL")
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class Violation(NamedTuple):
    """A rule that the values at `path` violate."""

    path: FieldPath
    message: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. `line` and `column` count from 1; both are None where the document comes from no text."""

    file: str
    line: int | None
    column: int | None
    field: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


class FormError(UsageError):
    """A file cannot be used. `problems` holds every mistake of one pass, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class FileKind:
    """The name of a kind of file and the words for its messages."""

    noun: str
    """`topology`"""
    start: str
    """The fields that every file of the kind has: `name and hosts`."""
    sharing: str = "write the values out"
    """The replacement for a merge key."""
    error: type[FormError] = FormError
    missing: Mapping[str, str] = field(default_factory=dict)
    """Required field → the allowed values."""
    unknown: Callable[[FieldPath], str] = lambda _path: ""
    """A function that returns a replacement for the unknown field at this path, or an empty text."""

    @property
    def a_noun(self) -> str:
        """Return the name with its article: `a topology`, `an incident`."""
        return f"an {self.noun}" if self.noun[0] in "aeiou" else f"a {self.noun}"


class FloatLiteral(float):
    """A float that keeps the user's text (4.10 is not 4.1)."""

    text: str

    def __new__(cls, text: str) -> "FloatLiteral":
        """Parse `text` as YAML's core schema does and return the number."""
        self = super().__new__(cls, text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@dataclass
class Document:
    """The values of a file, the place of each, and the mistakes in its YAML."""

    file: str
    kind: FileKind
    values: Any = None
    problems: list[Problem] = field(default_factory=list)
    refused: set[FieldPath] = field(default_factory=set)
    """Values that `problems` reports already."""
    keys: dict[FieldPath, yaml.Mark] = field(default_factory=dict)
    marks: dict[FieldPath, yaml.Mark] = field(default_factory=dict)

    def refuse(self, message: str, line: int | None = None, column: int | None = None) -> NoReturn:
        """Raise the kind's error with one problem of the file as a whole."""
        raise self.kind.error([Problem(self.file, line, column, "", message)]) from None

    def problem(self, path: FieldPath, message: str, at_key: bool = False) -> Problem:
        """Return a problem at this field, or at the nearest enclosing field of the text."""
        exact = self.keys.get(path) if at_key else self.marks.get(path)
        enclosing = (
            places[path[:end]]
            for end in range(len(path), -1, -1)
            for places in (self.keys, self.marks)
            if path[:end] in places
        )
        line, column = _position(exact or next(enclosing, None))
        return Problem(self.file, line, column, field_name(path), message)

    def raise_problems(self, problems: Iterable[Problem]) -> None:
        """Raise the kind's error when there are problems, in the order of the file."""
        in_order = sorted(dict.fromkeys(problems), key=lambda p: (p.line or 0, p.column or 0))
        if in_order:
            raise self.kind.error(in_order)

    def raise_violations(self, violations: Iterable[Violation]) -> None:
        """Raise the kind's error when rules are violated, in the order of the file."""
        self.raise_problems(self.problem(violation.path, violation.message) for violation in violations)


def field_name(path: FieldPath) -> str:
    """Return a path as users write it: `hosts.b1.nic.rate`, `racks[1]`, `kafka.properties[node.id]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif 0 < len(part) <= 60 and all(c.isalnum() or c in "_-" for c in part):
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text


def read(path: str | Path, kind: FileKind) -> Document:
    """Read a file and return its document. Raise the kind's error when the file is not readable YAML."""
    file = Path(path)
    shown = str(path) if str(path).isprintable() else repr(str(path))
    refuse = Document(shown, kind).refuse
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            what = "a directory" if file.is_dir() else "not a regular file"
            refuse(f"this is {what}; {kind.a_noun} is a YAML file")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        refuse(f"there is no such file{_neighbour(file)}")
    except (OSError, ValueError) as error:
        refuse(f"it cannot be read: {getattr(error, 'strerror', None) or error}")
    if len(raw) > MAX_BYTES:
        refuse(f"it is larger than {MAX_BYTES} bytes; {kind.a_noun} is a page of text")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; {kind.a_noun} is a YAML file in UTF-8"
        refuse(message, before.count(b"\n") + 1, column)
    return parse(text, shown, kind)


def is_file(path: str | Path) -> bool:
    """Return whether there is a file of this name, which may be any text: also one that no file can have."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _neighbour(file: Path) -> str:
    try:
        names = sorted(path.name for path in file.parent.glob("*.y*ml"))
    except OSError:
        return ""
    return did_you_mean(file.name, names, lambda name: file.parent / name)


def parse(text: str, file: str, kind: FileKind) -> Document:
    """Parse one YAML document and return it. Raise the kind's error when the text as a whole is unreadable."""
    document = Document(file, kind)
    document.values = _Composer(document).value(_compose(text, document), ())
    return document


def _compose(text: str, document: Document) -> yaml.Node:
    """Return the root node. PyYAML's own constructors lose the marks and expand aliases without a limit."""
    kind, refuse = document.kind, document.refuse
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        refuse(f"larger than {MAX_BYTES} bytes; {kind.a_noun} is a page of text", 1, 1)
    text = text.removeprefix("\ufeff")
    unreadable = _NOT_TEXT.search(text)
    if unreadable:
        before = text[: unreadable.start()].replace("\r\n", "\n").replace("\r", "\n")
        message = f"the character U+{ord(unreadable[0]):04X} is not text; {kind.a_noun} is a YAML file in UTF-8"
        refuse(message, before.count("\n") + 1, len(before) - before.rfind("\n"))
    try:
        node = _LimitedLoader(text, document).get_single_node()
    except yaml.MarkedYAMLError as error:
        line, column = _position(error.problem_mark or error.context_mark)
        refuse(f"not valid YAML: {_yaml_message(error)}", line or 1, column or 1)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        refuse(f"not valid YAML: {show(str(error))}", 1, 1)
    if not isinstance(node, yaml.Node):
        refuse(f"the file is empty; {kind.a_noun} needs at least {kind.start}", 1, 1)
    return node


def _position(mark: Any) -> tuple[int, int] | tuple[None, None]:
    """Return line and column of PyYAML's mark, from 1."""
    return (mark.line + 1, mark.column + 1) if mark is not None else (None, None)


def _yaml_message(error: yaml.MarkedYAMLError) -> str:
    message = show(error.problem or error.context or "it cannot be read")
    if "'\\t'" in message:
        return "a tab where YAML allows only spaces; indent with spaces"
    if "undefined alias" in message:
        return f"{message}; define it with &name first"
    return f"{message} ({error.context})" if error.context and error.problem else message


class _LimitedLoader(yaml.SafeLoader):
    """Composes nodes, and refuses a text that exceeds a limit of size, depth or documents, or that has a tag."""

    def __init__(self, text: str, document: Document) -> None:
        super().__init__(text)
        self._document = document
        self._count = self._depth = self._documents = 0

    def get_event(self) -> yaml.Event:
        """Return the next event of the text."""
        event: yaml.Event = super().get_event()  # type: ignore[no-untyped-call]
        if (excess := self._excess(event)) is not None:
            self._document.refuse(excess, *_position(event.start_mark))
        return event

    def _excess(self, event: yaml.Event) -> str | None:
        kind = self._document.kind
        self._count += 1
        if self._count > MAX_NODES:
            return f"more than {MAX_NODES} values; {kind.a_noun} is a page of text"
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                return f"a second document starts here (---); allowed: one {kind.noun} in a file"
        elif isinstance(event, yaml.CollectionStartEvent):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                return f"nested deeper than {MAX_DEPTH} levels; {kind.a_noun} is a page of text"
        elif isinstance(event, yaml.CollectionEndEvent):
            self._depth -= 1
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = show(tag.replace("tag:yaml.org,2002:", "!!"))
            return f"the tag {shown} is not used here; write the plain value, in quotes if it is text"
        return None


class _Composer:
    """Build values from nodes, with a budget: one alias may expand to very many nodes.

    Scalars follow YAML 1.2's core schema, as editors do: only true and false are booleans, and 12:30 is text.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: list[yaml.Node] = []
        self._budget = MAX_NODES

    def value(self, node: yaml.Node, path: FieldPath) -> Any:
        document = self._document
        # A block starts at its first child. A problem with the whole block is better located at its key.
        block = isinstance(node, yaml.CollectionNode) and not node.flow_style
        document.marks[path] = document.keys.get(path, node.start_mark) if block else node.start_mark
        self._budget -= 1
        if self._budget < 0:
            self._refuse_alias(path, f"aliases expand to more than {MAX_NODES} values; write them out")
        if any(node is parent for parent in self._open):
            self._refuse_alias(path, "this alias contains itself; write the values out")
        if len(self._open) > MAX_DEPTH:
            self._refuse_alias(path, f"aliases nest deeper than {MAX_DEPTH} levels; write the values out")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            assert isinstance(node, yaml.MappingNode)
            return dict(self._pairs(node, path))
        finally:
            self._open.pop()

    def _refuse_alias(self, path: FieldPath, message: str) -> NoReturn:
        raise self._document.kind.error([self._document.problem(path[:6], message)])

    def _pairs(self, node: yaml.MappingNode, path: FieldPath) -> Iterator[tuple[str, Any]]:
        keys = self._document.keys
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, path, "a list or mapping is used as a key; allowed: a name")
                continue
            here = (*path, key_node.value)
            if key_node.value == "<<" and key_node.style is None:
                self._report(key_node, here, f"merge keys are not used here; {self._document.kind.sharing}")
            elif here in keys:
                self._report(key_node, here, f"given twice, first in line {keys[here].line + 1}; allowed: once")
            else:
                keys[here] = key_node.start_mark
                yield key_node.value, self.value(value_node, here)

    def _scalar(self, node: yaml.ScalarNode, path: FieldPath) -> Any:
        text: str = node.value
        wrong = None
        if len(text) > MAX_TEXT:
            wrong = f"{len(text)} characters of text; allowed: {MAX_TEXT}"
        elif _NOT_TEXT.search(text):  # only through an escape such as "\0" or "\ud800"
            wrong = f"{show(text)} has a character in it that is not text; allowed: printable text"
        if wrong is not None:
            self._report(node, path, wrong)
            self._document.refused.add(path)
            return _NOT_TEXT.sub("", text[:MAX_TEXT])
        return text if node.style is not None else _plain(text)

    def _report(self, node: yaml.Node, path: FieldPath, message: str) -> None:
        line, column = _position(node.start_mark)
        self._document.problems.append(Problem(self._document.file, line, column, field_name(path), message))


def _plain(text: str) -> Any:
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text) and len(text) <= 30:
        return int(text)
    return FloatLiteral(text) if _FLOAT.fullmatch(text) else text
