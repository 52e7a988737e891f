"""The machines' readings: CPU, memory, pressure and clock, of several machines as of one."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.cgroups import CpuQuota
from testbed.errors import TestbedError
from testbed.probes import agent, machine
from testbed.probes.machine import LoadReading, QuotaProbe, machine_probe, worst
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


@pytest.mark.parametrize("counted", [True, False], ids=["pressure", "no pressure"])
def test_the_same_is_read_here_from_the_kernels_files(tmp_path, counted):
    first, memory, *pressures = TEXT.splitlines()
    (tmp_path / "stat").write_text(f"{first}\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    (tmp_path / "meminfo").write_text(f"MemTotal: 100 kB\nMemFree: 10 kB\n{memory}\n")
    if counted:
        (tmp_path / "pressure").mkdir()
        for line in pressures:
            name, rest = line.split(" ", 1)
            (tmp_path / "pressure" / name).write_text(f"some avg10=9.57 total=119100533\nfull {rest}\n")
    expected = LoadReading.parse(TEXT if counted else f"{first}\n{memory}")
    assert LoadReading.here(tmp_path) == expected


def test_the_worst_machine_counts():
    here = {"cpu.busy": 0.2, "memory.available": 5e9, "pressure.io": 3.0}
    others = [{"cpu.busy": 0.9, "memory.available": 6e9, "pressure.io": 1.5}, {"memory.available": 1e9}]
    assert worst([here, *others]) == {"cpu.busy": 0.9, "memory.available": 1e9, "pressure.io": 4.5}


def test_the_probe_samples_the_machine():
    look = machine_probe()
    time.sleep(0.05)  # CPU times are counted in ticks of 10 ms
    found = {sample.metric: sample for sample in look()}
    assert {"memory.available", "clock.offset", "cpu.busy", "cpu.steal"} <= set(found)
    assert {sample.host for sample in found.values()} == {"machine"}


def test_the_use_of_a_quota_is_a_share_of_it(tmp_path, monkeypatch):
    (tmp_path / "cpu.stat").write_text("usage_usec 1000000\n")
    now = iter([10.0, 12.0, 13.0])
    monkeypatch.setattr(machine.time, "monotonic", lambda: next(now))
    probe = QuotaProbe(CpuQuota(1.5, tmp_path, tmp_path / "cpu.stat"))
    (tmp_path / "cpu.stat").write_text("usage_usec 3400000\n")
    assert probe.look() == {"cpu.quota": pytest.approx(0.8)}  # 2.4 s of 2 s with 1.5 CPUs
    (tmp_path / "cpu.stat").unlink()
    assert probe.look() == {}
    assert QuotaProbe(None).look() == {}


def test_a_quota_is_a_part_of_the_machines_identity_only_where_there_is_one(monkeypatch):
    monkeypatch.setattr(machine, "own_cpu_quota", lambda: None)
    assert set(machine.fingerprint()) == {"cpu_model", "cores", "memory_bytes", "kernel"}
    monkeypatch.setattr(machine, "own_cpu_quota", lambda: CpuQuota(1.5, Path("/x"), Path("/x/cpu.stat")))
    assert machine.fingerprint()["cpu_quota"] == 1.5


def test_another_machine_is_read_at_each_look():
    later = TEXT.replace("cpu  100 ", "cpu  100100 ").replace(" 800 ", " 100800 ")
    texts = iter([TEXT, *[later] * 1000])
    shell = SimpleNamespace(name="m2", run=lambda _command, timeout_s: SimpleNamespace(stdout=next(texts)))
    look = machine_probe({"m2": shell})
    first = LoadReading.here().total
    wait_for(lambda: LoadReading.here().total, lambda total: total > first, 5.0, 0.01, "a tick of the clock")
    assert next(sample.value for sample in look() if sample.metric == "cpu.busy") >= 0.5


def test_what_a_machine_says_that_is_no_load_is_an_error():
    shell = SimpleNamespace(name="m2", run=lambda _command, timeout_s: SimpleNamespace(stdout="permission denied"))
    with pytest.raises(TestbedError, match="m2: its load was not understood"):
        machine_probe({"m2": shell})


def test_the_offset_of_the_clocks_stays_while_nobody_sets_one():
    first = agent.clock_offset()
    assert abs(first - (time.time() - time.monotonic())) < 0.05
    assert abs(agent.clock_offset() - first) < 0.005


def test_the_offset_is_of_the_reading_that_was_interrupted_least(monkeypatch):
    wall = iter([10_000, 20_500, 30_000])
    steady = iter([0, 2_000, 10_000, 10_900, 20_000, 29_000])  # 2000, 900 and 9000 ns
    monkeypatch.setattr(agent.time, "time_ns", lambda: next(wall))
    monkeypatch.setattr(agent.time, "monotonic_ns", lambda: next(steady))
    assert agent.clock_offset() == (20_500 - 10_450) / 1e9
