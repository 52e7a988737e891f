"""The clock of a load: a wall clock that is set meanwhile does not move it, and its processes share it."""

import json
import os
import subprocess
import sys
import time

from testbed.workload.child import LoadClock

CHILD = "from testbed.workload.child import Orders, now_us; Orders(); print(now_us())"


def test_a_wall_clock_that_is_set_back_or_on_moves_nothing(monkeypatch):
    clock = LoadClock()
    before, wall = clock.now_us(), time.time_ns()
    for step_s in (-3600, 3600):
        monkeypatch.setattr(time, "time_ns", lambda step_s=step_s: wall + step_s * 10**9)
        assert 0 <= clock.now_us() - before < 5e6
    assert abs(before - wall / 1000) < 5e6


def test_a_process_goes_by_the_clock_of_whoever_started_it():
    clock = LoadClock()
    clock.offset_ns += 3600 * 10**9  # as if the wall clock had been set back since
    order = {
        "spec": {},
        "bootstrap": "",
        "producer": 1,
        "seed": 1,
        "parent": os.getpid(),
        "clock_offset_ns": clock.offset_ns,
        "envelopes": [],
    }
    begun = clock.now_us()
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(order) + "\n", capture_output=True, text=True, check=True
    )
    assert begun < int(done.stdout) < clock.now_us()
