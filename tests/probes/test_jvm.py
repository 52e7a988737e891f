"""The agent reads a broker's pauses, collections and heap from the file that its JVM keeps."""

import os
import shutil
import subprocess
import time

import pytest

from testbed.probes import agent
from testbed.wait import wait_for
from tests.probes.jvm_file import performance_data

TICKS = os.sysconf("SC_CLK_TCK")
BROKER = {
    "sun.os.hrt.frequency": 1_000_000_000,
    "sun.rt.javaCommand": "kafka.Kafka /etc/server.properties",
    "sun.rt.safepointTime": 1_500_000_000,
    "sun.rt.safepointSyncTime": 250_000_000,
    "sun.rt.safepoints": 17,
    "sun.gc.collector.0.name": "Serial young collection pauses",
    "sun.gc.collector.0.time": 450_000_000,
    "sun.gc.collector.0.invocations": 4,
    "sun.gc.collector.1.time": 1_000_000_000,
    "sun.gc.collector.1.invocations": 2,
    "sun.gc.generation.1.space.0.used": 159_181_800,
    "sun.gc.generation.1.maxCapacity": 357_957_632,
}


@pytest.fixture
def host(tmp_path):
    """A host's folders, and a function that adds a process with its performance data."""

    def add(pid, data, command="java", state="S", cpus="00000000,00000003"):
        (tmp_path / "proc" / pid).mkdir(parents=True)
        (tmp_path / "proc" / pid / "comm").write_text(command + "\n")
        times = f"{3 * TICKS} {TICKS // 2} 9 9"  # in user mode, in the kernel, and of ended children
        (tmp_path / "proc" / pid / "stat").write_text(
            f"{pid} (a) (name) {state} 1 12 12 0 -1 4194560 900 0 5 0 {times} 20 0\n"
        )
        status = "Name:\tjava\nVmSwap:\t    1000 kB\nRssAnon:\t  5000 kB\nRssFile:\t   800 kB\n"
        (tmp_path / "proc" / pid / "status").write_text(status + f"Cpus_allowed:\t{cpus}\n")
        (tmp_path / "hsperfdata_root").mkdir(exist_ok=True)
        (tmp_path / "hsperfdata_root" / pid).write_bytes(data)

    return tmp_path, add


def read(folder):
    return agent.jvm_metrics(str(folder), str(folder / "proc"))


def test_a_brokers_counters_in_seconds_and_bytes(host):
    folder, add = host
    add("12", performance_data(BROKER))
    assert read(folder) == [
        ["jvm.pause.seconds", None, None, None, 1.75],
        ["jvm.pauses", None, None, None, 17],
        ["jvm.collection.seconds", None, None, "young", 0.45],
        ["jvm.collections", None, None, "young", 4],
        ["jvm.collection.seconds", None, None, "full", 1.0],
        ["jvm.collections", None, None, "full", 2],
        ["jvm.old.used", None, None, None, 159_181_800],
        ["jvm.old.max", None, None, None, 357_957_632],
        ["jvm.cpu.seconds", None, None, None, 3.5],
        ["jvm.memory.bytes", None, None, None, 6000 * 1024],
        ["jvm.stopped", None, None, None, 0.0],
        ["jvm.cpus", None, None, None, 2],
    ]


def test_a_stopped_broker_and_the_cpus_that_it_may_use(host):
    folder, add = host
    add("12", performance_data(BROKER), state="T", cpus="4")
    assert read(folder)[-2:] == [["jvm.stopped", None, None, None, 1.0], ["jvm.cpus", None, None, None, 1]]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("cpu.stat", "usage_usec 9\nnr_periods 5\nnr_throttled 3\nthrottled_usec 2500000\n"),
        ("cpu/cpu.stat", "nr_periods 5\nnr_throttled 3\nthrottled_time 2500000000\n"),
    ],
    ids=["version 2", "version 1"],
)
def test_the_time_for_which_a_cpu_limit_held_back(tmp_path, file, text):
    assert agent.throttled_seconds(str(tmp_path)) is None
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert agent.throttled_seconds(str(tmp_path)) == 2.5


@pytest.mark.parametrize(
    "files",
    [
        {"memory.events": "low 0\nhigh 0\nmax 7\noom 0\noom_kill 2\n", "io.max": "8:0 rbps=max wbps=1048576\n"},
        {
            "memory/memory.failcnt": "7\n",
            "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            "blkio/blkio.throttle.read_bps_device": "",
            "blkio/blkio.throttle.write_bps_device": "8:0 1048576\n",
        },
    ],
    ids=["version 2", "version 1"],
)
def test_limits_of_memory_and_of_a_disk(tmp_path, files):
    assert agent.limited(str(tmp_path)) == []
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    values = {"memory.limited": 7, "memory.killed": 2, "disk.limited": 1.0}
    assert agent.limited(str(tmp_path)) == [[name, None, None, None, value] for name, value in values.items()]
    for file in files:
        if "max" in file or "write" in file:
            (tmp_path / file).write_text("")
    assert agent.limited(str(tmp_path))[2][-1] == 0.0


def test_a_kernel_that_does_not_count_its_kills_says_nothing_of_them(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\n")
    assert agent.limited(str(tmp_path)) == []


def test_a_group_that_cannot_be_limited_counts_nothing(tmp_path):
    (tmp_path / "cpu.stat").write_text("usage_usec 9\n")  # the first of all
    assert agent.throttled_seconds(str(tmp_path)) is None


def test_other_processes_dead_brokers_and_half_written_files_are_passed_over(host):
    folder, add = host
    add("7", performance_data({**BROKER, "sun.rt.javaCommand": "kafka.tools.StorageTool format"}))
    add("8", performance_data(BROKER), command="sh")  # the number of a killed broker, used again
    add("9", performance_data(BROKER)[:200])
    add("10", b"")
    add("11", b"no performance data, though it is as long as a header of it")
    (folder / "hsperfdata_root" / "13").write_bytes(performance_data(BROKER))  # its process is gone
    assert read(folder) == []
    add("12", performance_data({**BROKER, "sun.rt.safepoints": 18}))
    assert ["jvm.pauses", None, None, None, 18] in read(folder)


def test_what_a_jvm_does_not_count_is_left_out(host):
    folder, add = host
    add("12", performance_data({name: value for name, value in BROKER.items() if "safepoint" not in name}))
    assert [name for name, *_rest in read(folder)] == [
        *["jvm.collection.seconds", "jvm.collections"] * 2,
        "jvm.old.used",
        "jvm.old.max",
        "jvm.cpu.seconds",
        "jvm.memory.bytes",
        "jvm.stopped",
        "jvm.cpus",
    ]


@pytest.mark.skipif(not shutil.which("java"), reason="needs Java")
def test_a_real_jvm_has_these_counters(tmp_path):
    (tmp_path / "Wait.java").write_text(
        "class Wait { public static void main(String[] a) throws Exception { System.gc(); System.in.read(); } }"
    )
    with subprocess.Popen(["java", "-XX:+UseSerialGC", str(tmp_path / "Wait.java")], stdin=subprocess.PIPE) as process:

        def counters():
            for path in agent.pathlib.Path("/tmp").glob(f"hsperfdata_*/{process.pid}"):
                try:
                    return agent.performance_counters(path.read_bytes())
                except (ValueError, IndexError, agent.struct.error):
                    return {}
            return {}

        def collected(counters):
            # The JVM counts a collection when it begins, its time when it ends, and the pause after both.
            return 0 < counters.get("sun.gc.collector.1.time", 0) < counters["sun.rt.safepointTime"]

        found = wait_for(counters, collected, 30, 0.1, "a full collection")
        begun = time.process_time()
        values = {(name, label): value for name, _t, _p, label, value in agent.jvm_values(found)}
        assert time.process_time() - begun < 0.05
        process.communicate(b"\n")
    assert values["jvm.collections", "full"] >= 1
    assert 0 < values["jvm.collection.seconds", "full"] < values["jvm.pause.seconds", None] < 10
    assert 0 < values["jvm.old.used", None] < values["jvm.old.max", None]
