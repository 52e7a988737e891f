"""The readers of what others wrote, fuzzed: some damaged inputs in every run, and ten minutes of them at night.

TESTBED_FUZZ_MINUTES and TESTBED_FUZZ_SEED set another time and other inputs; TESTBED_FUZZ_ONLY names readers.
"""

import os
import random
import resource

import pytest

from tests.hostile.fuzz import damaged, fuzz, tried
from tests.hostile.readers import readers

MINUTES = float(os.environ.get("TESTBED_FUZZ_MINUTES", "10"))
SEED = int(os.environ.get("TESTBED_FUZZ_SEED", "1"))
ONLY = os.environ.get("TESTBED_FUZZ_ONLY", "")
MEMORY_BYTES = 8 * 2**30
INPUTS = 25
READERS = [each for each in readers() if not ONLY or each.name in ONLY.split(",")]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_reader_accepts_its_seeds_and_reads_or_refuses_whatever_is_damaged(reader):
    for seed in reader.seeds[:3]:
        assert tried(reader, seed) is None
    draw = random.Random(f"{SEED} {reader.name}")
    assert [found for _ in range(INPUTS) if (found := tried(reader, damaged(reader.seeds, draw)))] == []


@pytest.fixture
def little_memory():
    """More is a MemoryError, and so a finding."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.nightly
def test_ten_minutes_of_damaged_inputs(little_memory):
    found, counts = fuzz(READERS, 60 * MINUTES, SEED)
    print(f"{sum(counts.values())} inputs in {MINUTES:g} min: {dict(counts)}")
    assert len(counts) == len(READERS)
    assert found == [], "\n".join(map(str, found))
