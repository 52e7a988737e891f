"""docs/workload.md tells the truth: its example runs, and it names every field and every metric."""

import dataclasses
import re
from pathlib import Path

import pytest

from testbed.probes.recorder import Recorder
from testbed.workload import outcome
from testbed.workload.spec import ConsumerSpec, ProducerSpec

PAGE = (Path(__file__).parents[2] / "docs" / "workload.md").read_text()


def test_its_example_runs(cluster):
    cluster.topic("clicks")
    names = {"bootstrap": cluster.bootstrap, "recorder": Recorder()}
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, names)
    assert names["result"].held
    assert (names["found"].lost, names["found"].found) == (0, names["result"].process("producer-1").acked)


@pytest.mark.parametrize("spec", [ProducerSpec, ConsumerSpec])
def test_it_names_every_field(spec):
    missing = [field.name for field in dataclasses.fields(spec) if f"`{field.name}`" not in PAGE]
    assert not missing


def test_it_names_every_metric():
    metrics = {
        *outcome._PRODUCED.values(),
        *outcome._CONSUMED.values(),
        "client.produce.latency",
        "client.consume.latency",
    }
    assert set(re.findall(r"`(client\.[a-z_.]+)`", PAGE)) == metrics
