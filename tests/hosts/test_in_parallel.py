import signal
import threading
import time

import pytest

from testbed.hosts.host import in_parallel


def test_results_have_the_order_of_the_items_and_the_first_failure_comes_after_all_have_ended():
    assert in_parallel("abc", str.upper) == ["A", "B", "C"]
    ended = []

    def work(number):
        time.sleep(0.02 * number)
        ended.append(number)
        if number == 1:
            raise ValueError(number)

    with pytest.raises(ValueError, match="1"):
        in_parallel(range(4), work)
    assert sorted(ended) == [0, 1, 2, 3]


def test_after_an_interrupt_nothing_begins_and_what_has_begun_ends():
    """Ctrl-C during `up` removed what was there, while the other hosts were still being made."""
    begun, ended = [], []

    def work(number):
        begun.append(number)
        if number == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.3)
        ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        in_parallel(range(100), work)
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 100
    time.sleep(0.1)
    assert sorted(begun) == sorted(ended)
