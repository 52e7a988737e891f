"""A disk's bandwidth holds what is written through the page cache, where control groups are of version 2.

Shown in a guest, on the layers that a host's disk has: ext4 on a loop device, limited in the writer's control group.
"""

import re

import pytest

from tests.containers.guest import Guest

pytestmark = [pytest.mark.containers, pytest.mark.nightly]

LIMIT_BYTES_PER_S = 10_000_000
WRITTEN_BYTES = 60 * 1024 * 1024
COUNT = WRITTEN_BYTES >> 20
SCRIPT = f"""
mkdir -p /cg /data
mount -t cgroup2 none /cg
echo +io +memory > /cg/cgroup.subtree_control
mkdir /cg/broker
dd if=/dev/zero of=/run/disk.img bs=1M seek=200 count=0 2> /dev/null
/sbin/mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /run/disk.img
losetup /dev/loop0 /run/disk.img
mount -t ext4 /dev/loop0 /data
write() {{
    sh -c 'echo $$ > /cg/broker/cgroup.procs; dd if=/dev/zero of=/data/log bs=1M count={COUNT} 2> /dev/null'
    sync
}}
tell() {{ echo $1 $(cut -d ' ' -f 1 /proc/uptime) $(awk '{{print $7}}' /sys/block/loop0/stat); }}
tell free-begin
write
tell free-end
rm /data/log
sync
echo "7:0 wbps={LIMIT_BYTES_PER_S} rbps={LIMIT_BYTES_PER_S}" > /cg/broker/io.max
write &
sleep 1.5
tell held-begin
sleep 3
tell held-end
wait
"""


def rate(said: str, name: str) -> float:
    """Bytes per second that reached the disk between the two tellings of this name."""
    begun, ended = (re.search(rf"^{name}-{word} ([\d.]+) (\d+)$", said, re.MULTILINE) for word in ("begin", "end"))
    assert begun and ended, said
    return 512 * (int(ended[2]) - int(begun[2])) / (float(ended[1]) - float(begun[1]))


def test_what_a_broker_writes_reaches_its_disk_at_the_declared_rate():
    said = Guest.fetched().run(SCRIPT, modules=("loop",), timeout_s=100)
    free, held = rate(said, "free"), rate(said, "held")
    print(f"free {free / 1e6:.1f} MB/s, held {held / 1e6:.1f} MB/s")
    assert 0.85 <= held / LIMIT_BYTES_PER_S <= 1.1
    assert free >= 1.5 * LIMIT_BYTES_PER_S
