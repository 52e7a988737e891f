"""The load of several machines as one."""

from types import SimpleNamespace

import pytest

from results.contract.schema import Sample
from testbed.errors import TestbedError
from testbed.probes.machine import cpu_times
from testbed.probes.other_machines import LoadReading, machines_probe, worst
from testbed.wait import wait_for

TEXT = """cpu  100 0 50 800 40 0 10 0 0 0
MemAvailable:    2048 kB
memory avg10=0.00 avg60=0.00 avg300=0.00 total=1500000
io avg10=0.00 avg60=0.00 avg300=0.00 total=250000
"""


def test_a_reading_has_ticks_memory_and_pressure():
    reading = LoadReading.parse(TEXT)
    assert (reading.busy, reading.steal, reading.total) == (160, 0, 1000)
    assert reading.gauges == {"memory.available": 2048 * 1024, "pressure.memory": 1.5, "pressure.io": 0.25}
    later = LoadReading(250, 30, 1100)
    assert later.since(LoadReading(160, 0, 1000)) == {"cpu.busy": 0.9, "cpu.steal": 0.3}
    assert later.since(later) == {}


def test_the_worst_machine_counts():
    here = [
        Sample(1, "machine", "cpu.busy", 0.2),
        Sample(1, "machine", "memory.available", 5e9),
        Sample(1, "machine", "pressure.io", 3.0),
        Sample(1, "machine", "clock.offset", 7.0),
    ]
    found = worst(here, [{"cpu.busy": 0.9, "memory.available": 6e9, "pressure.io": 1.5}, {"memory.available": 1e9}])
    assert {each.metric: each.value for each in found} == {
        "cpu.busy": 0.9,
        "memory.available": 1e9,
        "pressure.io": 4.5,
        "clock.offset": 7.0,
    }


def test_another_machine_is_read_at_each_look():
    later = TEXT.replace("cpu  100 ", "cpu  100100 ").replace(" 800 ", " 100800 ")
    texts = iter([TEXT, *[later] * 1000])
    shell = SimpleNamespace(name="m2", run=lambda _command, timeout_s: SimpleNamespace(stdout=next(texts)))
    look = machines_probe({"m2": shell})
    first = cpu_times()[2]
    wait_for(lambda: cpu_times()[2], lambda total: total > first, 5.0, 0.01, "a tick of the clock")
    assert next(sample.value for sample in look() if sample.metric == "cpu.busy") >= 0.5


def test_what_a_machine_says_that_is_no_load_is_an_error():
    shell = SimpleNamespace(name="m2", run=lambda _command, timeout_s: SimpleNamespace(stdout="permission denied"))
    with pytest.raises(TestbedError, match="m2: its load was not understood"):
        machines_probe({"m2": shell})
