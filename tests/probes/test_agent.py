import functools
import io
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from testbed.probes import agent

AGENT = Path(agent.__file__)


def test_only_replicas_of_wanted_topics_count_and_only_their_segments(tmp_path):
    for name, files in {
        "t-0": {"00.log": 10, "05.log": 7, "00.index": 99},
        "t-12": {"00.log": 5},
        "t-a-1": {"00.log": 1000},
        "t-3.abc-delete": {"00.log": 1000},
        "other-0": {"00.log": 1000},
    }.items():
        (tmp_path / name).mkdir()
        for file, size in files.items():
            (tmp_path / name / file).write_bytes(b"x" * size)
    assert agent.log_sizes(str(tmp_path), ["t"]) == {("t", 0): 17, ("t", 12): 5}


def test_a_segment_that_disappears_during_the_listing_does_not_hide_the_others(tmp_path, monkeypatch):
    (tmp_path / "t-0").mkdir()
    for name in ("00.log", "05.log"):
        (tmp_path / "t-0" / name).write_bytes(b"x" * 10)
    real = agent.os.scandir

    class Listing:
        """A listing after which a tiered log gives up its first segment."""

        def __init__(self, path):
            self.found = list(real(path))
            if str(path).endswith("t-0"):
                (tmp_path / "t-0" / "00.log").unlink(missing_ok=True)

        def __enter__(self):
            return self.found

        def __exit__(self, *_error):
            pass

        def __iter__(self):
            return iter(self.found)

    monkeypatch.setattr(agent.os, "scandir", Listing)
    assert agent.log_sizes(str(tmp_path), ["t"]) == {("t", 0): 10}


def test_a_broker_that_did_not_format_its_directory_yet_has_no_replica(tmp_path):
    assert agent.log_sizes(str(tmp_path / "later"), ["t"]) == {}


def test_a_sample_that_fails_is_an_answer_with_its_reason_and_the_agent_goes_on():
    config = json.dumps({"interval_s": 0.1, "log_dir": None, "topics": [], "devices": ["none0"], "jmx_port": None})
    process = subprocess.Popen([sys.executable, "-I", "-S", str(AGENT), config], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.stdout.close()
    process.wait(timeout=10)
    assert all("none0" in answer["error"] for answer in answers)


def test_a_costly_sample_is_followed_by_a_longer_rest_and_a_cheap_one_is_not():
    assert agent.next_due(10.0, 10.1, 1.0) == 11.0
    assert agent.next_due(10.0, 10.1, 1.0, spent=0.02, cpus=0.04) == 11.0
    assert agent.next_due(10.0, 10.1, 1.0, spent=0.1, cpus=0.04) == 12.5
    assert agent.next_due(10.0, 10.1, 1.0, spent=0.9, cpus=0.04) == 15.0  # the longest
    assert agent.next_due(10.0, 13.0, 1.0, spent=0.1, cpus=0.2) == 12.0  # late: at once


def test_it_needs_nothing_but_the_standard_library_and_prints_json_lines():
    config = json.dumps({"interval_s": 0.5, "log_dir": None, "topics": [], "devices": ["lo"], "jmx_port": None})
    process = subprocess.Popen([sys.executable, "-I", "-S", str(AGENT), config], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first, second = (json.loads(process.stdout.readline()) for _ in range(2))
    process.stdout.close()
    assert process.wait(timeout=10) in (0, 120, 1)  # it ends by itself once nobody listens
    assert [name for name, *_rest in first["v"]] == ["nic.rx.bytes", "nic.tx.bytes", "clock.offset", "agent.late"]
    assert 300_000 <= second["t"] - first["t"] <= 5_000_000


def test_an_agent_that_stood_still_says_for_how_long():
    config = json.dumps({"interval_s": 0.2, "log_dir": None, "topics": [], "devices": ["lo"], "jmx_port": None})
    with subprocess.Popen([sys.executable, "-I", "-S", str(AGENT), config], stdout=-1, text=True) as process:
        process.stdout.readline()
        time.sleep(0.05)  # it sleeps
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        process.send_signal(signal.SIGCONT)
        late = [json.loads(process.stdout.readline())["v"][-1] for _ in range(4)]
        process.kill()
    assert {name for name, *_rest in late} == {"agent.late"}
    assert max(each[-1] for each in late) >= 0.4


def test_a_broker_that_does_not_answer_makes_no_agent_late():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        config = json.dumps({"interval_s": 0.2, "log_dir": None, "topics": [], "devices": ["lo"], "jmx_port": port})
        with subprocess.Popen([sys.executable, "-I", "-S", str(AGENT), config], stdout=-1, text=True) as process:
            late = [json.loads(process.stdout.readline())["v"][-1] for _ in range(3)]
            process.kill()
    assert {name for name, *_rest in late} == {"agent.late"}
    assert max(each[-1] for each in late) < 0.4


def test_a_rate_that_was_never_used_is_0_and_one_that_could_not_be_read_is_a_gap(monkeypatch):
    def answer(status, call, **_other):
        asked = json.loads(call.data)
        rates = [n for n, each in enumerate(asked) if each["attribute"] == "byte-rate"]
        replies = [{"status": status if n in rates else 200, "value": 7} for n in range(len(asked))]
        return io.BytesIO(json.dumps(replies).encode())

    for status, expected in ((404, [0.0, 0.0]), (500, []), (403, []), (200, [7, 7])):
        monkeypatch.setattr("urllib.request.urlopen", functools.partial(answer, status))
        assert [value for name, *_rest, value in agent.metrics(1) if name.endswith("byte_rate")] == expected


def test_a_missing_mbean_is_a_gap_and_the_others_are_read(monkeypatch):
    def answer(call, **_other):
        asked = json.loads(call.data)
        missing = ("request=Metadata", "broker-metadata-metrics")
        replies = [
            {"status": 404} if each["mbean"].endswith(missing) else {"status": 200, "value": n}
            for n, each in enumerate(asked)
        ]
        return io.BytesIO(json.dumps(replies).encode())

    monkeypatch.setattr("urllib.request.urlopen", answer)
    found = agent.metrics(1, latency=True)
    assert [label for name, _t, _p, label, _value in found if name == "broker.requests"] == [
        name for name in agent.REQUESTS if name != "Metadata"
    ]
    names = {name for name, *_rest in found}
    assert "broker.metadata_offset" not in names
    assert {"broker.bytes_in", "broker.produce.p99_ms"} <= names
    # A count and a time of one request are two readings of one MBean.
    assert len({tuple(each[:2]) for each in agent.asked(latency=True)}) == len(agent.asked(latency=True))


def test_bytes_of_devices_are_those_of_java_processes_in_one_pass(tmp_path):
    for pid, command, counts in (("7", "java", (10, 400)), ("8", "java", (5, 30)), ("9", "python3", (1000, 1000))):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "comm").write_text(f"{command}\n")
        names = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")
        (tmp_path / pid / "io").write_text(
            "".join(f"{name}: {value}\n" for name, value in zip(names, (1, 2, 3, 4, *counts, 5), strict=True))
        )
    (tmp_path / "10").mkdir()  # it has ended
    (tmp_path / "self").mkdir()
    assert agent.device_bytes(str(tmp_path)) == (15, 430)
    assert agent.device_bytes(str(tmp_path / "self")) is None


def test_a_silent_broker_gives_no_values_rather_than_wrong_ones():
    assert agent.metrics(1) == []


STORE = """\
# HELP minio_api_requests_total Total number of requests
# TYPE minio_api_requests_total counter
minio_api_requests_total{name="PutObject",server="198.19.0.13:9000",type="s3"} 12
minio_api_requests_total{name="GetObject",server="198.19.0.13:9000",type="s3"} 3e+06
minio_api_requests_5xx_errors_total{name="PutObject",server="198.19.0.13:9000",type="s3"} 2
minio_api_requests_traffic_received_bytes{server="198.19.0.13:9000",type="s3"} 1.5e+09
minio_api_requests_traffic_received_bytes{server="198.19.0.13:9000",type="internode"} 7
minio_api_requests_ttfb_seconds_distribution{le="0.05",name="PutObject",type="s3"} 11
minio_api_requests_ttfb_seconds_distribution{le="+Inf",name="PutObject",type="s3"} 12
minio_api_requests_waiting_total{type="s3"} 0
"""


def test_what_a_store_has_counted(monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", lambda *_asked, **_other: io.BytesIO(STORE.encode()))
    assert agent.store_metrics(9000) == [
        ["s3.requests", None, None, "PutObject", 12.0],
        ["s3.requests", None, None, "GetObject", 3e6],
        ["s3.errors.5xx", None, None, "PutObject", 2.0],
        ["s3.rx.bytes", None, None, None, 1.5e9],
        ["s3.ttfb", None, None, "PutObject 0.05", 11.0],
        ["s3.ttfb", None, None, "PutObject +Inf", 12.0],
    ]


def test_a_store_that_does_not_answer_has_counted_nothing_that_is_known():
    assert agent.store_metrics(1) == []


def test_how_long_a_store_took_to_answer_is_sampled():
    values = agent.sample({"devices": [], "s3_port": 1})["v"]
    (seconds,) = (each[4] for each in values if each[0] == "s3.answer.seconds")
    assert 0 <= seconds < 5


TCP = """  sl  local_address rem_address   st tx_queue rx_queue
   0: 0B0013C6:1389 010013C6:A112 01 00000000:00000000 00:00000000
   1: 0B0013C6:2384 010013C6:A113 01 00000000:00000000 00:00000000
   2: 0B0013C6:B000 0C0013C6:2385 01 00000000:00000000 00:00000000
   3: 0B0013C6:1389 010013C6:A114 06 00000000:00000000 00:00000000
   4: 0100007F:1389 0100007F:A115 01 00000000:00000000 00:00000000
"""
TCP6 = """  sl  local_address rem_address st
   0: 0000000000000000FFFF00000B0013C6:1388 0000000000000000FFFF00000C0013C6:0050 01 0:0
   1: 0000000000000000FFFF00000B0013C6:2384 0000000000000000FFFF00000C0013C6:A000 01 0:0
   3: 0000000000000000FFFF00000B0013C6:1388 0000000000000000FFFF00000B0013C6:0050 01 0:0
   2: 00000000000000000000000000000000:2384 00000000000000000000000000000000:0000 0A 0:0
"""


def test_a_connection_with_a_port_of_neither_kafka_nor_the_testbed_is_foreign(tmp_path):
    (tmp_path / "tcp").write_text(TCP)
    (tmp_path / "tcp6").write_text(TCP6)
    found = agent.foreign_connections(["0B0013C6"], [9092, 9093], str(tmp_path))
    assert [label for _name, _topic, _partition, label, _value in found] == [
        "port 5001 with 198.19.0.1 port 41234",
        "port 5000 with 198.19.0.12 port 80",
    ]
    assert agent.foreign_connections(["0B0013C6"], [], str(tmp_path / "none")) == []


def test_the_address_of_a_device_is_as_the_kernel_lists_it():
    assert agent.address_of("lo") == "0100007F"
    assert agent.address_of("none0") == ""


def test_messages_of_icmp_and_udp_and_opened_connections_are_counted(tmp_path):
    assert agent.protocol_counts(str(tmp_path)) == []
    (tmp_path / "snmp").write_text(
        "Icmp: InMsgs InErrors OutMsgs\nIcmp: 11 7 9\nTcp: MaxConn ActiveOpens PassiveOpens\nTcp: -1 40 500\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams\nUdp: 600 3 2 80\n"
    )
    assert agent.protocol_counts(str(tmp_path)) == [
        ["nic.datagrams", None, None, None, 11 + 9 + 600 + 3 + 80],
        ["tcp.opened", None, None, None, 40],
    ]
