"""Any faults, put in and healed in any order: in between all is as the rest makes it, at the end as declared."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.faults import Faults, parse_fault
from testbed.faults import disks as disks_module
from testbed.faults.catalogue import memory_limit
from tests.faults.fakes import RACKS, FakeTestbed, declared

TEXTS = [
    "nic-rate host=b2 rate=50mbit direction=receive",
    "nic-rate host=b2 rate=80mbit",
    "nic-down host=b3",
    "nic-cut hosts=b1 peers=b2 direction=transmit",
    "nic-cut hosts=b2 peers=b1,b3",
    "nic-impair host=b2 corrupt=1% duplicate=2%",
    "nic-impair host=b2 corrupt=3% reorder=5% direction=transmit",
    "uplink-rate rack=r1 rate=20mbit",
    "cpu-limit host=b4 cpus=0.5",
    "cpu-limit host=b4 cpus=0.2",
    "memory-limit host=b4 memory=900MiB",
    "memory-limit host=b4 memory=700MiB",
    "disk-slow host=b4 rate=5MB/s",
    "disk-slow host=b4 rate=2MB/s",
    "disk-full host=b4",
    "disk-read-only host=b4",
    "disk-full host=b2",
    "broker-stall host=b2 pause=1s every=2s",
    "broker-stall host=b2 pause=3s every=9s",
    "broker-pause host=b3",
    "client-stampede host=b1 brokers=b2 connections=5",
]


DISK_FULL, DISK_READ_ONLY = parse_fault("disk-full host=b4"), parse_fault("disk-read-only host=b4")


@pytest.fixture(autouse=True)
def verified(monkeypatch):
    """What the fakes cannot show, and the container tests do: a refused write, its time, and connections."""
    for text in TEXTS:
        kind = type(parse_fault(text))
        if kind.kind.startswith(("disk-", "client-")):
            monkeypatch.setattr(kind, "verify", lambda _fault, _testbed: None)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_any_faults_in_any_order_end_at_the_baseline(monkeypatch, racks_of, texts, draw):
    with tempfile.TemporaryDirectory() as folder:
        racks = racks_of(folder)
        faults = Faults(racks)
        ids = {text: faults.add(parse_fault(text)) for text in texts}
        order = list(texts)
        draw.shuffle(order)
        while order:
            gone = order.pop()
            faults.clear(ids.pop(gone))
            alone = racks_of(Path(folder) / str(len(order)))
            for text in texts:
                if text in ids:
                    Faults(alone).add(parse_fault(text))
            racks_again = racks_of(folder, racks)
            assert racks_again.kernel.all() == alone.kernel.all(), (texts, gone)
        assert racks.snapshot() == declared(racks), texts


@pytest.fixture
def racks_of(monkeypatch):
    """Make `racks` in a state folder of its own, or go on with one that was made before."""
    from tests.faults.conftest import _current

    def make(folder, known=None):
        monkeypatch.setenv("XDG_STATE_HOME", str(folder))
        testbed = known or FakeTestbed(RACKS, "racks")
        _current[0] = testbed
        return testbed

    yield make
    _current.pop(0, None)


@pytest.mark.parametrize("first", ["disk-full host=b4", "disk-read-only host=b4"])
def test_a_disk_that_is_full_and_read_only_is_healed_of_either_first(racks, first):
    """A file with the immutable flag cannot be removed, nor can one be made."""
    faults = Faults(racks)
    texts = ["disk-read-only host=b4", "disk-full host=b4"]
    ids = {text: faults.add(parse_fault(text)) for text in texts}
    faults.clear(ids.pop(first))
    assert racks.kernel.all()[3] == {("b4", "read_only" if first == texts[1] else "full")}
    faults.clear()
    assert racks.snapshot() == declared(racks)


def test_the_kernel_names_one_of_two_reasons_why_a_disk_refuses_a_write(racks, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(disks_module, "active_on", lambda *_words: [DISK_FULL, DISK_READ_ONLY])
    for said, answer in (
        ("dd: No space left on device", None),
        ("dd: Operation not permitted", None),
        ("dd: Input/output error", "dd: Input/output error"),
        ("", "the disk of b4 still takes a file"),
    ):
        monkeypatch.setattr(disks_module, "refusal", lambda *_words, said=said: said)
        assert DISK_FULL.verify(racks) == answer


def test_a_disk_has_the_lowest_rate_and_a_host_the_lowest_memory(racks):
    faults = Faults(racks)
    for text in ("disk-slow host=b4 rate=5MB/s", "disk-slow host=b4 rate=2MB/s"):
        faults.add(parse_fault(text))
    assert disks_module.wanted_rate(racks, "b4") == 2_000_000
    faults.add(parse_fault("memory-limit host=b1 memory=900MiB"))
    faults.add(parse_fault("memory-limit host=b1 memory=700MiB"))
    assert memory_limit.wanted(racks, "b1") == 700 * 2**20
    faults.clear()
    assert (disks_module.wanted_rate(racks, "b4"), memory_limit.wanted(racks, "b1")) == (None, None)
