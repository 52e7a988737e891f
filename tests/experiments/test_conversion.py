import pytest

from results.contract.schema import Sample
from testbed.experiments.model_inputs import conversion_factor


def samples(*rows):
    """(second, sent by b1, log at b2 or None before the replica exists)."""
    found = []
    for second, sent, log in rows:
        found.append(Sample(second * 1_000_000, "b1", "nic.tx.bytes", sent, label="data0"))
        found.append(Sample(second * 1_000_000 + 300, "b2", "nic.rx.bytes", sent, label="data0"))
        if log is not None:
            found.append(Sample(second * 1_000_000 + 300, "b2", "log.bytes", log / 2, "t", 0))
            found.append(Sample(second * 1_000_000 + 300, "b2", "log.bytes", log / 2, "t", 1))
    return found


def factor(rows, begun, ended):
    return conversion_factor(
        samples(*rows), source="b1", target="b2", topic="t", begun_us=begun * 1_000_000, ended_us=ended * 1_000_000
    )


def test_sent_bytes_over_grown_log_between_samples_around_the_transfer():
    rows = [(1, 1000.0, None), (2, 1000.0, None), (3, 1500.0, 480.0), (4, 2060.0, 1000.0), (5, 9999.0, 5000.0)]
    assert factor(rows, 2.5, 3.5) == pytest.approx(1.06)


def test_a_transfer_that_no_sample_encloses_has_no_factor():
    rows = [(2, 1000.0, 0.0), (3, 1500.0, 480.0)]
    assert factor(rows, 1, 2.5) is None
    assert factor(rows, 2.5, 4) is None


def test_nothing_transferred_is_not_a_factor():
    assert factor([(1, 0.0, 0.0), (2, 0.0, 0.0), (3, 0.0, 0.0)], 1.5, 2.5) is None
