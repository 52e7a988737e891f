"""What hangs is stopped, and where it hung is kept."""

import contextlib
import signal
import subprocess
import sys
import time

import pytest

from testbed.errors import TestbedError
from testbed.runner.time_limit import STACKS, TimeLimitError, time_limit
from testbed.signals import deferred_signals


def hang(seconds=20.0):
    time.sleep(seconds)


def test_what_is_done_in_time_leaves_nothing(tmp_path):
    with time_limit(5, "case", tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_hangs_is_stopped_and_its_stack_is_kept(tmp_path):
    begun = time.monotonic()
    with (
        pytest.raises(TimeLimitError, match=r"case x was not done after 0\.2 s and was stopped"),
        time_limit(0.2, "case x", tmp_path),
    ):
        hang()
    assert time.monotonic() - begun < 5
    assert "in hang" in (tmp_path / STACKS).read_text()


def test_what_must_not_be_left_half_done_is_done_first(tmp_path):
    done = []
    with pytest.raises(TimeLimitError), time_limit(0.1, "case", tmp_path), deferred_signals():
        hang(0.4)
        done.append("put back")
    assert done == ["put back"]


def test_an_error_that_the_stop_became_is_told_as_the_stop(tmp_path):
    with pytest.raises(TimeLimitError, match="it ended with ValueError"), time_limit(0.1, "case", tmp_path):
        try:
            hang()
        except KeyboardInterrupt:
            raise ValueError("half") from None


def test_a_stop_that_is_swallowed_is_no_success(tmp_path):
    with pytest.raises(TimeLimitError), time_limit(0.1, "case", tmp_path), contextlib.suppress(KeyboardInterrupt):
        hang()


def test_ctrl_c_stays_ctrl_c(tmp_path):
    with pytest.raises(KeyboardInterrupt), time_limit(5, "case", tmp_path):
        raise KeyboardInterrupt


def test_what_hangs_is_stopped_where_ctrl_c_is_ignored_too(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(TimeLimitError), time_limit(0.1, "case", tmp_path):
            hang()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_does_not_even_stop_then_ends_with_its_process(tmp_path):
    script = f"""
import time
from pathlib import Path
from testbed.runner.time_limit import time_limit

def deaf():
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

with time_limit(0.2, "case", Path({str(tmp_path)!r}), grace_s=0.5):
    deaf()
"""
    begun = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", script], timeout=30, check=False)
    assert ended.returncode == TestbedError.exit_code  # 1 would say that Kafka is at fault
    assert time.monotonic() - begun < 15
    assert (tmp_path / STACKS).read_text().count("in deaf") == 2
