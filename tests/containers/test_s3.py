"""The same move on the very same brokers, with its log on disk and tiered: what the article says of data in S3."""

import secrets

import pytest

from results.contract.manifest import Manifest, new_run_id
from results.contract.store import Store
from results.criteria import Judgement
from results.criteria.relocation_measures import copied_bytes, formula
from testbed.experiments import load
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.experiment_run import run_on
from testbed.provision.testbed import Testbed

pytestmark = [pytest.mark.containers, pytest.mark.store]  # it asserts facts that hold on a busy machine
FACTS = ("move-done", "records-intact", "live-records", "leaders-as-planned", "tiered-local-fraction", "copied-bytes")
"""What holds on any machine, however busy."""


def moved(testbed: Testbed, store: Store, storage: str) -> tuple[Manifest, Judgement]:
    experiment = find_experiment("s3-reassign")
    settings = read_settings(experiment, "smoke", [f"storage={storage}", "size=150MB"])
    experiment.fits(testbed.topology, settings)
    run_id = new_run_id(experiment.name, token=secrets.token_hex(3))
    judgement = run_on(testbed, experiment, settings, "smoke", run_id, store, print)
    for each in judgement.criteria:
        print(f"{storage}: {each.verdict} {each.name} {each.host or ''} {each.why}")
    return store.manifest(run_id), judgement


@pytest.mark.parametrize("storage", ["tiered", pytest.param("disk", marks=pytest.mark.nightly)])
def test_a_tiered_log_is_reassigned_without_copying_it_and_one_on_disk_is_copied(tmp_path, monkeypatch, storage):
    # Tests beside this one keep the cores busy: a run would wait for calm in vain, and no fact needs it.
    monkeypatch.setattr(load, "WARM_S", load.WARM_LOOK_S)
    with Testbed.up("s3", name="ci-s3", ephemeral=True, progress=print) as testbed:
        run, seen = moved(testbed, Store.open(tmp_path), storage)
    bad = [(c.name, c.host, c.why) for c in seen.criteria if c.name in FACTS and c.verdict != "pass"]
    assert bad == []
    assert run.relocation is not None
    copied, whole = copied_bytes(run.relocation, seen.measures), formula(run, run.relocation, whole=True)
    assert copied is not None
    assert whole is not None
    assert seen.measures.done_s is not None
    print(
        f"{storage} {seen.measures.done_s} s, log size / NIC {whole} s, copied {copied} of {run.relocation.total_bytes}"
    )
    # Of a tiered log a tenth lies on disk at most; what else crosses is what was written in these seconds.
    assert (copied < 0.2 * run.relocation.total_bytes) is (storage == "tiered")
    assert (seen.measures.done_s < whole) is (storage == "tiered")
