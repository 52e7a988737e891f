"""The machine's readings: memory, pressure and clock."""

import time

from testbed.probes import agent
from testbed.probes.machine import available_bytes, machine_probe, pressure_seconds


def test_pressure_is_the_time_in_which_every_task_waited(tmp_path):
    (tmp_path / "io").write_text(
        "some avg10=0.57 avg60=1.23 avg300=4.27 total=119100533\n"
        "full avg10=0.23 avg60=0.21 avg300=0.13 total=14789073\n"
    )
    assert pressure_seconds("io", tmp_path) == 14.789073


def test_a_kernel_that_counts_no_pressure_gives_none(tmp_path):
    assert pressure_seconds("io", tmp_path) is None
    (tmp_path / "cpu").write_text("some avg10=16.89 avg60=29.85 avg300=57.54 total=1389803765\n")
    assert pressure_seconds("cpu", tmp_path) is None


def test_available_memory_is_in_bytes(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 50 kB\n")
    assert available_bytes(tmp_path / "meminfo") == 51_200


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


def test_the_probe_samples_the_machine():
    look = machine_probe()
    time.sleep(0.05)  # CPU times are counted in ticks of 10 ms
    found = {sample.metric: sample for sample in look()}
    assert {"memory.available", "clock.offset"} <= set(found)
    assert {sample.host for sample in found.values()} == {"machine"}
