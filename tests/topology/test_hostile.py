# ruff: noqa: E501 - messages are written as they are printed
"""Hostile and broken files: one clear line and never a traceback, whatever the bytes."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.topology import Topology, TopologyError, load, load_document, loads
from testbed.yaml_document import MAX_BYTES

GOOD = (Path(__file__).parents[2] / "topologies" / "six-brokers.yaml").read_text()
SECONDS = 5.0


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "t.yaml:1:1: the file is empty; a topology needs at least name and hosts"),
        ("# nothing\n\n", "t.yaml:1:1: the file is empty; a topology needs at least name and hosts"),
        ("---\n...\n", "t.yaml:2:1: found only nothing, not a mapping; a topology starts with name: and hosts:"),
        ("- a\n- b\n", "t.yaml:1:1: found a list, not a mapping; a topology starts with name: and hosts:"),
        ("two-brokers", "t.yaml:1:1: found only two-brokers, not a mapping; a topology starts with name: and hosts:"),
        ("name: t\n---\nname: u\n", "t.yaml:2:1: a second document starts here (---); allowed: one topology in a file"),
        (
            "name: t\nhosts:\n\tb1: {}\n",
            "t.yaml:3:1: not valid YAML: a tab where YAML allows only spaces; indent with spaces",
        ),
        (
            "name: [t\nhosts: 1",
            "t.yaml:2:6: not valid YAML: expected ',' or ']', but got ':' (while parsing a flow sequence)",
        ),
        ("name: 'ab\n", "t.yaml:2:1: not valid YAML: found unexpected end of stream (while scanning a quoted scalar)"),
        ("name: *x\n", "t.yaml:1:7: not valid YAML: found undefined alias 'x'; define it with &name first"),
        ("name: a\0b", "t.yaml:1:8: the character U+0000 is not text; a topology is a YAML file in UTF-8"),
        ("a: 1\nb: \x1b[31m", "t.yaml:2:4: the character U+001B is not text; a topology is a YAML file in UTF-8"),
        ("name: \ud800", "t.yaml:1:7: the character U+D800 is not text; a topology is a YAML file in UTF-8"),
        (
            "name: !!python/object/apply:os.system [id]",
            "t.yaml:1:7: the tag !!python/object/apply:os.system is not used here; write the plain value, in quotes if it is text",
        ),
        ("name: !x y", "t.yaml:1:7: the tag !x is not used here; write the plain value, in quotes if it is text"),
        ("[" * 100_000, "t.yaml:1:33: nested deeper than 32 levels; a topology is a page of text"),
        ("{a: " * 5000, "t.yaml:1:129: nested deeper than 32 levels; a topology is a page of text"),
        ("- " * 5000, "t.yaml:1:65: nested deeper than 32 levels; a topology is a page of text"),
        ("x: [" + "1," * 300_000, "t.yaml:1:39995: more than 20000 values; a topology is a page of text"),
        ("#" * (MAX_BYTES + 1), f"t.yaml:1:1: larger than {MAX_BYTES} bytes; a topology is a page of text"),
        ("é" * (MAX_BYTES // 2 + 1), f"t.yaml:1:1: larger than {MAX_BYTES} bytes; a topology is a page of text"),
        ("a: &a [*a]", "t.yaml:1:4: a[0]: this alias contains itself; write the values out"),
        ("a: &a {b: *a}", "t.yaml:1:4: a.b: this alias contains itself; write the values out"),
        ('a: "\\U00110000"', "t.yaml:1:1: not valid YAML: chr() arg not in range(0x110000)"),
        ("%YAML 9" + "9" * 5000 + ".1\n---\na: 1", None),
    ],
    ids=lambda text: repr(text)[:30],
)
def test_texts_that_cannot_be_read(text: str, line: str | None) -> None:
    started = time.monotonic()
    with pytest.raises(TopologyError) as refused:
        loads(text, "t.yaml")
    assert time.monotonic() - started < SECONDS
    assert len(refused.value.problems) == 1
    assert line is None or str(refused.value) == line


@pytest.mark.parametrize("levels", [4, 8, 9, 30])
def test_an_alias_bomb_does_not_go_off(levels: int) -> None:
    started = time.monotonic()
    with pytest.raises(TopologyError) as refused:
        loads(bomb(levels), "t.yaml")
    assert time.monotonic() - started < SECONDS
    if levels > 4:
        assert "aliases expand to more than 20000 values; write them out" in str(refused.value)


def test_keys_that_are_no_names() -> None:
    with pytest.raises(TopologyError) as refused:
        loads("[a, b]: 1\n? {c: d}\n: 2\n<<: {e: f}\n<<: 3\n", "t.yaml")
    said = str(refused.value)
    assert "t.yaml:1:1: a list or mapping is used as a key; allowed: a name" in said
    assert "t.yaml:2:3: a list or mapping is used as a key; allowed: a name" in said
    assert "t.yaml:4:1: [<<]: merge keys are not used here; what hosts share stands in defaults or roles" in said


def test_escapes_cannot_smuggle_control_characters() -> None:
    text = GOOD.replace(
        "Six brokers in two racks, 400 Mbit/s each; b1, b2 and b3 are the controllers, too.", '"a\\0b\\ud800"'
    )
    with pytest.raises(TopologyError) as refused:
        loads(text, "t.yaml")
    expected = (
        "t.yaml:3:14: description: 'a\\x00b\\ud800' has a character in it that is not text; allowed: printable text"
    )
    assert str(refused.value) == expected


def test_what_is_printed_is_short_and_printable() -> None:
    with pytest.raises(TopologyError) as refused:
        loads(GOOD.replace("role: both", f'role: "\\e[31m{"x" * 10_000}"').replace("b4:", f"{'b' * 900}:"), "t.yaml")
    for line in str(refused.value).split("\n"):
        assert line.isprintable() and len(line) < 300


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0", "1:1: the character U+007F is not text; a topology is a YAML file in UTF-8"),
        (b"name: t\nb: caf\xe9\n", "2:7: byte 0xe9 is not UTF-8; a topology is a YAML file in UTF-8"),
        (b"\xff\xfen\0a\0", "1:1: byte 0xff is not UTF-8; a topology is a YAML file in UTF-8"),
        (b"\x1f\x8b\x08\x00", "1:2: byte 0x8b is not UTF-8; a topology is a YAML file in UTF-8"),
    ],
    ids=["elf", "latin-1", "utf-16", "gzip"],
)
def test_files_that_are_not_text(raw: bytes, line: str, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_bytes(raw)
    with pytest.raises(TopologyError) as refused:
        load(file)
    assert str(refused.value) == f"{file}:{line}"


def test_things_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "two-brokers.yaml").write_text(GOOD)
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    for path, said in (
        (tmp_path / "two-broker.yaml", f"there is no such file; did you mean {tmp_path / 'two-brokers.yaml'}?"),
        (tmp_path / "x" / "y.yaml", "there is no such file"),
        (tmp_path, "this is a directory; a topology is a YAML file"),
        (pipe, "this is not a regular file; a topology is a YAML file"),
        (Path("/dev/zero"), "this is not a regular file; a topology is a YAML file"),
        (loop, "it cannot be read: Too many levels of symbolic links"),
        (tmp_path / ("n" * 300), "it cannot be read: File name too long"),
        (large, f"it is larger than {MAX_BYTES} bytes; a topology is a page of text"),
    ):
        with pytest.raises(TopologyError) as refused:
            load(path)
        assert str(refused.value) == f"{path}: {said}"
    with pytest.raises(TopologyError, match="embedded null byte"):
        load("a\0b")


# Text that is likely to come close to a topology: words of the format and bits of YAML, in any order.
WORDS = st.sampled_from(
    [
        "name",
        "hosts",
        "racks",
        "kafka",
        "version",
        "properties",
        "defaults",
        "roles",
        "nic",
        "rate",
        "tx_rate",
        "burst",
        "delay",
        "loss",
        "nics",
        "disk",
        "uplink",
        "role",
        "rack",
        "node_id",
        "broker",
        "both",
        "controller",
        "client",
        "b1",
        "b2",
        "r1",
        "4.3.1",
        "4.3",
        "400mbit",
        "400",
        "1MB",
        "true",
        "null",
        "~",
        "node.id",
        "a.b",
    ]
)
MARKS = st.sampled_from(
    [
        "\n",
        "\n  ",
        "\n    ",
        ": ",
        ":\n  ",
        ", ",
        "{",
        "}",
        "[",
        "]",
        "- ",
        "&a ",
        "*a",
        "'",
        '"',
        "#",
        "---\n",
        "!!str ",
        "<<: ",
        "\t",
        "|",
        ">",
        "? ",
        "%",
        "\\",
        "\r\n",
        "\0",
        "é",
    ]
)
NEARLY_YAML = st.lists(st.one_of(WORDS, MARKS), max_size=60).map("".join)


def check(text: str) -> None:
    try:
        topology = loads(text, "t.yaml")
    except TopologyError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.file == "t.yaml" and problem.message
            assert problem.line is not None and problem.line >= 1
            assert problem.column is not None and problem.column >= 1
            assert str(problem).isprintable()
    else:
        assert load_document(topology.to_document()) == topology


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), NEARLY_YAML))
def test_any_text_is_a_topology_or_refused(text: str) -> None:
    check(text)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 20), st.one_of(st.text(max_size=5), NEARLY_YAML))
def test_any_edit_of_a_good_file_is_a_topology_or_refused(at: int, cut: int, put: str) -> None:
    check(GOOD[:at] + put + GOOD[at + cut :])


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    WORDS,
    st.sampled_from(["1mbit", "20ms", "1%", "1GB", "50MB/s", "replication"]),
    st.just("r1"),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(WORDS, st.text(max_size=4)), inner, max_size=5)
    ),
    max_leaves=25,
)
NIC_FIELDS = ["rate", "tx_rate", "rx_rate", "burst", "delay", "jitter", "rx_loss", "name", "use", "x"]
NICS = st.dictionaries(st.sampled_from(NIC_FIELDS), SCALARS)
SEVERAL_NICS = st.dictionaries(st.one_of(WORDS, st.text(max_size=4)), st.one_of(NICS, SCALARS), max_size=4)
DISKS = st.dictionaries(st.sampled_from(["size", "bandwidth", "x"]), SCALARS)
RACKS = st.dictionaries(st.one_of(WORDS, st.text(max_size=4)), st.dictionaries(st.just("uplink"), NICS), max_size=3)
KAFKAS = st.fixed_dictionaries({}, optional={"version": SCALARS, "properties": VALUES})
HOSTS = st.fixed_dictionaries(
    {},
    optional={
        "role": SCALARS,
        "rack": SCALARS,
        "nic": NICS,
        "nics": SEVERAL_NICS,
        "disk": DISKS,
        "kafka": KAFKAS,
        "node_id": SCALARS,
        "x": VALUES,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "name": SCALARS,
        "racks": st.one_of(VALUES, RACKS),
        "kafka": KAFKAS,
        "defaults": st.fixed_dictionaries({}, optional={"nic": NICS, "nics": SEVERAL_NICS, "disk": DISKS}),
        "roles": st.dictionaries(WORDS, HOSTS, max_size=3),
        "hosts": st.dictionaries(st.one_of(WORDS, st.text(max_size=4)), HOSTS, max_size=4),
        "description": SCALARS,
    },
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(VALUES, DOCUMENTS))
def test_any_document_is_a_topology_or_refused(document: Any) -> None:
    try:
        topology = load_document(document)
    except TopologyError as error:
        assert error.problems and str(error)
    else:
        assert isinstance(topology, Topology)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DOCUMENTS)
def test_any_document_written_as_yaml_is_a_topology_or_refused(document: Any) -> None:
    check(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))


def test_documents_that_are_no_mappings() -> None:
    with pytest.raises(TopologyError) as refused:
        load_document([1])  # type: ignore[arg-type]
    assert str(refused.value) == "<document>: found a list, not a mapping; a topology starts with name: and hosts:"
    endless: dict[str, Any] = {"name": "t"}
    endless["hosts"] = {"b1": endless, 5: {}}
    endless["kafka"] = {"properties": endless}
    with pytest.raises(TopologyError):
        load_document(endless)
