"""A run whose command is killed while it is written: afterwards it is whole, or collected and nothing of it is left."""

import signal
import subprocess
import sys

import pytest

from results.contract.manifest import new_run_id
from results.contract.store import Store
from testbed.experiments.half_runs import collect_half_runs, noted
from testbed.experiments.record import jars_digest
from testbed.paths import state_dir
from tests.killed_process import ROOT, killed_at
from tests.provision.states import make

RUN_ID = "20261121T214000Z-kip73-two-node-dead00"
# Dies in the n-th step of writing; the store asks nothing of a run but its id and a verdict that is its criteria's.
KILLED = """
from types import SimpleNamespace
import results.contract.store as store
from results.contract.schema import EVENTS, SAMPLES
from testbed.experiments.record import commit
die_writing()
class Manifest(SimpleNamespace):
    def to_json(self):
        return "{}"
store.replace = lambda manifest, **changes: Manifest(**{**vars(manifest), **changes})
run = Manifest(run_id=sys.argv[2], verdict=store.overall([]))
commit(store.Store.open(sys.argv[1]), store.RunData(run, SAMPLES.empty_table(), EVENTS.empty_table(), []))
print("whole")
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def files(root):
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("steps", [0, 2, 5, 8, 11, 13, 14, 15, 30])
def test_killed_at_any_point_a_run_is_whole_or_collected(tmp_path, steps):
    root = tmp_path / "store"
    done = killed_at(steps, KILLED, root, RUN_ID)
    assert done.returncode == (0 if steps == 30 else -signal.SIGKILL), done.stderr
    whole = Store.open(root).runs() == [RUN_ID]
    left = Store.open(root).unfinished_files(RUN_ID)
    told = collect_half_runs(tmp_path, dry_run=True)
    assert told == ([f"{RUN_ID}: would be removed: a run that is not whole"] if left else [])
    assert collect_half_runs(tmp_path, dry_run=False) == [line.replace("would be ", "") for line in told]
    names = [f"runs/{RUN_ID}/{kind}.parquet" for kind in ("criteria", "events", "samples")]
    assert files(root) == ([f"manifests/{RUN_ID}.json", *names] if whole else [])
    assert list((root / "runs").glob("*") if not whole else ()) == []
    assert list((state_dir() / "commits").iterdir()) == []


def test_what_a_living_command_writes_is_left_alone(tmp_path):
    run_id = new_run_id("kip73-two-node", token="a11fe0")
    store = Store.open(tmp_path / "store")
    with noted(run_id, store.location):
        store.files.put(f"runs/{run_id}/samples.parquet", b"x")
        assert collect_half_runs(tmp_path, dry_run=False) == []
    assert files(tmp_path / "store") == [f"runs/{run_id}/samples.parquet"]


def test_half_a_report_goes_and_its_run_stays(tmp_path):
    code = (
        "import os, signal, sys\nfrom testbed.experiments.half_runs import noted\n"
        "with noted(sys.argv[1], sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = tmp_path / "store"
    Store.open(root).files.put(f"manifests/{RUN_ID}.json", b"{}")
    (tmp_path / f".{RUN_ID}.html.0a1b2c3d.tmp").write_text("<html>")
    subprocess.run([sys.executable, "-c", code, RUN_ID, str(root)], cwd=ROOT, check=False)
    assert collect_half_runs(tmp_path, dry_run=False) == [f"{RUN_ID}: removed: half a report"]
    assert files(root) == [f"manifests/{RUN_ID}.json"]
    assert [each for each in files(tmp_path) if not each.startswith("state/")] == [f"store/manifests/{RUN_ID}.json"]


def test_another_remote_storage_manager_is_other_software():
    """A night tells runs of the same software by their jars, and a comparison a variant that was built again."""
    kafka = {"b1": "4.3.1", "b2": "4.3.1"}
    assert jars_digest(make(kafka=kafka, digests={"4.3.1": "d2", "image": "d3"})) == "d2"
    tiered = make(kafka=kafka, digests={"4.3.1": "d2", "image": "d3", "remote-storage-manager": "d1"})
    assert jars_digest(tiered) == "d1,d2"
