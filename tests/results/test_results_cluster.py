"""Any Spark master: a standalone cluster of two workers, each a process of its own."""

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyspark
import pytest

from results.contract.store import Store
from results.nights.state import load, save
from results.series.block import Block
from results.series.noise_estimation import LearnedNoise, learn
from tests.results.many import filled, some_runs
from tests.results.synthetic import synthetic_run
from tools import generate
from tools import simulation as simulate
from tools.generate import Change, Spec

pytestmark = [pytest.mark.spark, pytest.mark.nightly]
HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
SPEC = Spec(10, 16, (Change(3, 13, 0.3),))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def reached(port, process, within_s=60):
    """Waits until something listens there."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        assert process.poll() is None, "it ended"
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on {port} after {within_s} s")


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The address of a cluster with two workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    here = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
        "SPARK_LOCAL_DIRS": str(folder),
    }

    def start(stack, *words):
        command = [str(HOME / "bin" / "spark-class"), *words]
        log = stack.enter_context((folder / f"{words[0]}-{words[-1].replace('/', '')}.log").open("wb"))
        process = subprocess.Popen(command, env=here, stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        return process

    with ExitStack() as stack:
        port, web = free_port(), free_port()
        words = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
        reached(port, start(stack, "org.apache.spark.deploy.master.Master", *words))
        address = f"spark://127.0.0.1:{port}"
        for _ in range(2):
            own = free_port()
            words = ("--host", "127.0.0.1", "--port", str(own), "--webui-port", "0", "-c", "1", "-m", "1g", address)
            reached(own, start(stack, "org.apache.spark.deploy.worker.Worker", *words))
        yield address


def test_a_cluster_judges_as_one_process_does(master, tmp_path):
    stores = [tmp_path / "cluster", tmp_path / "local"]
    values = simulate.store(np.random.default_rng(1), "gaussian", 60, 100, 0.03)
    noise = LearnedNoise(1 << 20, 60.0, learn(Block.of(values.T.tolist()), 1, 0.04))
    for root in stores:
        store = filled(Store.open(root), some_runs(synthetic_run().data(), 3))
        generate.history(store, SPEC)
        save(store, [], noise)  # so that nothing is learned: that is the longest part, on one worker anyway
    for root, where in zip(stores, (master, "local[2]"), strict=True):
        words = ["results", "judge", "--json", "--master", where, "--memory", "512m", "--store", str(root)]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-m", "testbed.cli.main", *words]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode in (1, 2), done.stderr[-3000:]
    cluster, local = (load(Store.open(root)) for root in stores)
    assert cluster == local
    assert {each.experiment for each in cluster.values()} == {"generated", "kip73-two-node"}
