"""A real campaign, killed in the middle of its first run."""

import signal
import subprocess
import sys

import pytest

from results.contract.store import Store
from testbed.experiments.reports import default_store
from testbed.provision import state as states
from testbed.runner.journal import campaign_state, folder, known, opened
from testbed.wait import wait_until
from tests.containers.conftest import ROOT, cli, left_of

pytestmark = [pytest.mark.containers, pytest.mark.spark, pytest.mark.nightly]
SWEEP = ("sweep", "kip73-two-node", "--set", "fetch=default,tuned", "--set", "rate=5MB/s", "--set", "preload=5s")


def test_a_series_killed_in_the_middle_is_resumed_and_leaves_runs_and_nothing_else():
    before = set(Store.open(default_store()).runs())
    process = subprocess.Popen(
        [sys.executable, "-m", "testbed.cli.main", *SWEEP], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )

    def running():
        assert process.poll() is None, process.communicate()
        return bool(known()) and '"begun"' in (folder() / f"{known()[-1]}.jsonl").read_text()

    wait_until(running, 90, 0.2, "the first run of the campaign")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    [series] = known()
    name = next(name for name in states.names() if name.startswith(f"series-{series[-6:]}"))
    told = cli("sweep", "--resume", series)
    print(told.stderr)
    # Moves this short have no steady part: inconclusive.
    assert told.returncode == 2, told.stdout
    assert "left by an interrupted campaign" in told.stderr
    with opened(series) as journal:
        state = campaign_state(journal.entries)
    assert sorted(state.ran) == [0, 1]
    assert {ran.done.run_id for ran in state.ran.values()} == set(Store.open(default_store()).runs()) - before
    assert state.confirmed == {ran.done.run_id for ran in state.ran.values()}
    assert all(ran.before and ran.after for ran in state.ran.values())
    assert all(0.9 < canary.reading["nic"] < 1.1 for canary in state.canaries)
    assert left_of(name) == []
    assert cli("reassign", "recover").stdout == "nothing to recover\n"
