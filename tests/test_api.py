"""`Testbed` from Python: what does not need one that is up. tests/containers/test_api.py executes docs/python.md."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import testbed.api
from testbed import Testbed
from testbed.errors import UsageError
from testbed.network.overlay import HERE
from testbed.provision import state as states
from testbed.topology import Topology, load_document
from testbed.topology.find import find
from tests.provision.states import make

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture
def up(tmp_path, monkeypatch):
    """A testbed as `up` gives it, without an engine; what is done to it is listed in `.done`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def up(*, made_here=True):
        found = Testbed.__new__(Testbed)
        found.state, found._made_here, found.done = make(), made_here, []
        states.save(found.state)
        monkeypatch.setattr(found, "down", lambda: found.done.append("down"))
        monkeypatch.setattr(found, "close", lambda: found.done.append("close"))
        return found

    return up


def test_importing_the_package_needs_no_dependency():
    code = "import sys, testbed; assert testbed.__version__; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not {"docker", "paramiko", "yaml", "pydantic"} & set(told.split())
    with pytest.raises(AttributeError, match="no attribute 'Testbad'"):
        testbed.Testbad  # noqa: B018


def test_what_was_made_for_a_block_is_removed_at_its_end_also_after_an_error(up):
    with up() as t:
        assert t.done == []
    assert t.done == ["down", "close"]
    broken = up()
    with pytest.raises(ValueError), broken:
        raise ValueError
    assert broken.done == ["down", "close"]


def test_within_the_block_it_is_garbage_once_its_process_is_dead(up):
    with up() as t:
        assert t.state.ephemeral
        assert states.load("one") == t.state


def test_what_was_up_before_the_block_stays_up(up):
    with up(made_here=False) as t:
        assert not states.load("one").ephemeral
    assert t.done == ["close"]


def test_connections_are_let_go_of_also_when_removing_fails(up, monkeypatch):
    t = up()
    monkeypatch.setattr(t, "down", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError), t:
        pass
    assert t.done == ["close"]


@pytest.mark.parametrize("given", ["three-brokers", "three-brokers.yaml", ROOT / "topologies" / "three-brokers.yaml"])
def test_a_topology_is_a_name_a_file_or_itself(given, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("testbed.provision.testbed.Engine", lambda: SimpleNamespace(members={HERE: None}))
    monkeypatch.setattr("testbed.provision.testbed.require_name", lambda _engine, _name: None)
    monkeypatch.setattr(Testbed, "_make", lambda _engine, topology, *_rest: topology)
    for topology in (given, find(str(given))):
        found = Testbed.up(topology)
        assert isinstance(found, Topology)
        assert found.digest() == find("three-brokers").digest()


def test_a_file_of_that_name_comes_before_the_ready_topology(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "topologies" / "two-brokers.yaml").read_text(encoding="utf-8")
    Path("three-brokers.yaml").write_text(text, encoding="utf-8")
    assert find("three-brokers.yaml").name == "two-brokers"
    with pytest.raises(UsageError, match="did you mean three-brokers"):
        find("three-broker")


def test_a_host_that_joins_has_the_active_faults_of_the_network(up, monkeypatch):
    t = up()
    host = find("three-brokers").host("b3")
    monkeypatch.setattr("testbed.provision.testbed.Testbed.add_host", lambda *_words, **_more: host)
    monkeypatch.setattr("testbed.faults.Faults.host_joined", lambda _faults, name: t.done.append(f"faults of {name}"))
    assert t.add_host("b3") is host
    assert t.done == ["faults of b3"]


def test_an_experiments_parameters_are_checked_and_the_state_is_read_again(up, monkeypatch):
    t = up()
    t.hosts, topology = {}, find("two-brokers").to_document()
    with pytest.raises(UsageError, match="kip73-two-node has no parameter 'rat'"):
        t.run("kip73-two-node", rat="5MB/s")
    with pytest.raises(UsageError, match="no experiment 'kip73'"):
        t.run("kip73")
    asked, keys = [], {"b1": "ssh-ed25519 one", "b2": "ssh-ed25519 two"}

    def run(request, progress):
        asked.append(request)
        states.save(make(overlay={"a": "b"}, topology=topology, host_keys=keys))
        return SimpleNamespace(verdict="pass")

    monkeypatch.setattr(testbed.api, "run", run)
    assert t.run("kip73-two-node", profile="smoke", rate="5MB/s", partitions=10).verdict == "pass"
    assert (asked[0].on, asked[0].profile, asked[0].settings) == ("one", "smoke", ["rate=5MB/s", "partitions=10"])
    assert t.state.overlay == {"a": "b"}
    before = dict(t.hosts)
    # A run may remove a broker and add it again, with another key.
    keys["b2"] = "ssh-ed25519 three"
    t.run("kip73-two-node")
    assert t.hosts["b1"] is before["b1"]
    assert t.hosts["b2"]._address.host_key == "ssh-ed25519 three"


def test_the_documents_examples_are_python_and_its_names_are_there():
    assert len(EXAMPLES) == 3
    for example in EXAMPLES:
        compile(example, "docs/python.md", "exec")
    assert len([line for line in EXAMPLES[0].splitlines() if line]) == 5
    names = {name for name in re.findall(r"\bt\.(\w+)|Testbed\.(\w+)", TEXT) for name in name if name}
    assert {"up", "run", "faults", "nics", "admin"} <= names
    attributes = {"hosts"}  # set when one is made
    assert {name for name in names if not hasattr(Testbed, name)} == attributes


def test_the_documents_topology_loads():
    made = {}
    exec(EXAMPLES[2].partition("with ")[0], made)
    assert len(load_document(made["by_hand"]).brokers) == 3
