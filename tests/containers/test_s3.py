"""The same move on the very same brokers, with its log on disk and tiered: what the article says of data in S3."""

import secrets

import pytest

from results.contract.manifest import Manifest, new_run_id
from results.contract.store import Store
from results.criteria import Judgement
from results.criteria.relocation_measures import copied_bytes, formula
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.runner import run_on
from testbed.provision.testbed import Testbed

pytestmark = [pytest.mark.containers, pytest.mark.store]  # it asserts facts that hold on a busy machine
FACTS = ("move-done", "records-intact", "live-records", "leaders-as-planned", "tiered-local-fraction", "copied-bytes")
"""What holds on any machine, however busy."""


def moved(testbed: Testbed, store: Store, storage: str) -> tuple[Manifest, Judgement]:
    experiment = find_experiment("s3-reassign")
    settings = read_settings(experiment, "smoke", [f"storage={storage}"])
    experiment.fits(testbed.topology, settings)
    run_id = new_run_id(experiment.name, token=secrets.token_hex(3))
    judgement = run_on(testbed, experiment, settings, "smoke", run_id, store, print)
    for each in judgement.criteria:
        print(f"{storage}: {each.verdict} {each.name} {each.host or ''} {each.why}")
    return store.manifest(run_id), judgement


def test_tiered_logs_are_reassigned_without_copying_them(tmp_path):
    store = Store.open(tmp_path)
    with Testbed.up("s3", name="ci-s3", ephemeral=True, progress=print) as testbed:
        tiered, seen_tiered = moved(testbed, store, "tiered")
        disk, seen_disk = moved(testbed, store, "disk")
    for judgement in (seen_tiered, seen_disk):
        bad = [(c.name, c.host, c.why) for c in judgement.criteria if c.name in FACTS and c.verdict != "pass"]
        assert bad == []
    assert tiered.relocation is not None
    assert disk.relocation is not None
    copied = [
        copied_bytes(run.relocation, judgement.measures)
        for run, judgement in ((tiered, seen_tiered), (disk, seen_disk))
        if run.relocation is not None
    ]
    assert copied[0] is not None
    assert copied[1] is not None
    # A tenth lies on disk at most; what else crosses is what was written meanwhile, in a tenth of the time.
    assert copied[0] < 0.2 * copied[1]
    whole = formula(tiered, tiered.relocation, whole=True)
    seconds = seen_tiered.measures.done_s, seen_disk.measures.done_s
    print(f"tiered {seconds[0]} s, disk {seconds[1]} s, log size / NIC {whole} s")
    assert seconds[0] is not None
    assert seconds[1] is not None
    assert seconds[0] < seconds[1]
