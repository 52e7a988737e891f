"""What a record costs: the account of ten million, and the sending of one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ACCOUNT = """
import pathlib, re, time
from testbed.workload.audit import Ledger
from testbed.workload.records import Envelope, ReadRecords, Recipe, WrittenRecords

PARTITIONS, EACH, CHUNK = 10, {each}, 2000
payloads, envelope = Recipe(1024, 1).payloads(), Envelope()
ledger = Ledger(
    WrittenRecords(
        1, "producer-1", "t", p, settled=EACH, sent=EACH, acked_at=((0, EACH, 0),) if p != 7 else (), envelope=envelope
    )
    for p in range(PARTITIONS)
)
spent_s = 0.0
for begin in range(0, EACH, CHUNK):
    for partition in range(PARTITIONS):
        places = [p for p in range(begin, begin + CHUNK) if (partition, p) != (7, EACH - 3)]
        values = [payloads.record(partition, place, 1, 1000) for place in places]
        keys = [envelope.key(partition, place) for place in places]
        headers = [envelope.headers(place) for place in places]
        first = places[0]
        found = ReadRecords([*range(first, first + len(places))], values, keys, headers, [1] * len(places))
        began = time.perf_counter()
        ledger.add("t", partition, found)
        spent_s += time.perf_counter() - began
began = time.perf_counter()
found = ledger.result()
spent_s += time.perf_counter() - began
assert found.complaints == (f"t-7: 1 of producer-1 lost, first at [{{EACH - 3}}]",), found
assert found.expected == PARTITIONS * EACH
# Not getrusage: that has the memory of whoever started us in it.
highest = re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())
print(spent_s, int(highest.group(1)) * 1024)
"""


def account(records):
    """Audit so many records of 1 KiB; returns seconds (checksums included, reading not) and bytes of memory."""
    script = ACCOUNT.format(each=records // 10)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    seconds, size = map(float, done.stdout.split())
    print(f"{records} records: {seconds:.1f} s, {size / 1e6:.0f} MB")
    return seconds, size


def test_half_a_million_records_are_accounted_for():
    _seconds, size = account(500_000)
    assert size < 300e6


@pytest.mark.nightly
def test_ten_million_records_take_less_than_a_minute_and_500_mb():
    seconds, size = account(10_000_000)
    assert seconds < 60
    assert size < 500e6
