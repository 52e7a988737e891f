"""Names that others chose: of brokers, racks, topics and files. No page, terminal or shell acts on them."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from results.contract.untrusted import visible
from results.render import junit, markdown_table, table
from results.report.render import render
from testbed.cli.main import main
from testbed.errors import TestbedError
from testbed.incidents.read import loads as load_incident
from testbed.topology import loads as load_topology
from tests.incidents.files import SMALL
from tests.results.synthetic import synthetic_run

TERMINAL = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202e"
NAMES = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}{% import os %}",
    "$(touch /tmp/owned)",
    "`touch /tmp/owned`",
    "b1; touch /tmp/owned",
    "../../../tmp/owned",
    "/etc/passwd",
    "-rf",
    "--help",
    "b1\nb2",
    "b1\x00b2",
    TERMINAL,
    "a" * 5000,
    "\U0001f4a3\u200b\u2066x",
]


class _Tags(HTMLParser):
    """The elements and event handlers of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.handlers = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _value in attrs if name.startswith("on")]


def page(name):
    """The report of a run whose hosts, topics, settings and events have this name wherever others choose it."""
    run = synthetic_run()
    manifest = replace(
        run.manifest,
        parameters={**run.manifest.parameters, name: name},
        machine=replace(run.manifest.machine, cpu_model=name),
    )

    def renamed(column):
        values = ["b2" if value is None else value for value in column.to_pylist()]
        return pa.array([name if value == "b2" else value for value in values], pa.string())

    samples = run.samples
    at = samples.column_names.index("host")
    samples = samples.set_column(at, samples.schema.field("host"), renamed(samples["host"]))
    events = run.events
    at = events.column_names.index("name")
    events = events.set_column(at, events.schema.field("name"), pa.array([name] * events.num_rows, pa.string()))
    judged = run.judged()
    return render(manifest, samples, events, judged.criteria, judged.measures)


@pytest.fixture(scope="module")
def plain():
    return _Tags(page("b2"))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_a_report_has_the_same_elements_whatever_a_name_is(plain, name):
    found = _Tags(page(name))
    assert found.handlers == plain.handlers
    assert sorted(set(found.tags)) == sorted(set(plain.tags))
    assert found.tags.count("script") == plain.tags.count("script")


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_a_topology_refuses_the_name_of_a_host_and_says_so_in_plain_text(name, capsys, tmp_path):
    file = tmp_path / "t.yaml"
    quoted = '"' + "".join(f"\\U{ord(each):08x}" for each in name) + '"'
    file.write_text(f"name: t\nkafka: {{version: 4.3.1}}\nhosts: {{{quoted}: {{role: both, nic: {{rate: 1mbit}}}}}}\n")
    with pytest.raises(TestbedError):
        load_topology(file.read_text(), "t.yaml")
    assert main(["plan", str(file)]) == 64
    told = capsys.readouterr()
    assert all(each.isprintable() or each in "\n\t" for each in told.out + told.err)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_an_incident_refuses_the_name_of_a_topic(name):
    quoted = '"' + "".join(f"\\U{ord(each):08x}" for each in name) + '"'
    topic = re.search(r"topics:\s*\n?\s*\{?([a-z]+)", SMALL)
    assert topic is not None, SMALL
    with pytest.raises(TestbedError) as refused:
        load_incident(SMALL.replace(topic[1], quoted), "i.yaml")
    assert visible(str(refused.value)) == str(refused.value)


def test_a_table_on_a_terminal_shows_control_characters_and_does_not_send_them():
    shown = table(("HOST",), [(f"b1{TERMINAL}",)])
    assert "\x1b" not in shown and "\x9b" not in shown and "\u202e" not in shown
    assert r"b1\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202e" in shown


def test_an_error_shows_control_characters_and_does_not_send_them(capsys, tmp_path):
    assert main(
        ["throttle", "estimate", "--plan", str(tmp_path / f"a{TERMINAL}b"), "--deadline", "1h", "--bootstrap", "x"]
    )
    told = capsys.readouterr().err
    assert "\x1b" not in told and "\x07" not in told
    assert r"\x1b[2J" in told


def test_text_without_control_characters_is_as_it_was():
    text = "broker b1: 10 MB/s, 99.9 %\n\tvéry ≥ fine\xa0x"
    assert visible(text) == text


def test_markdown_and_junit_hold_any_name():
    for name in NAMES:
        (row,) = markdown_table(("", "name"), [("OK", name)])[2:]
        assert "<script" not in row and "\n" not in row
        assert junit(name, [], [name])


def test_a_name_with_an_end_of_line_keeps_a_row_of_a_table_on_one_line():
    """A table for a pipe has one line a row: a text of others once made several, which `grep` took for rows."""
    assert table(("RUN", "WHY"), [("a", "one\r\ntwo\n\nOK  b"), ("c", "fine")]).splitlines()[1:] == [
        "a    one\\r two  OK  b",
        "c    fine",
    ]
