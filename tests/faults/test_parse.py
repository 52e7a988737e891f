import pytest

from testbed.errors import UsageError
from testbed.faults import as_text, kinds, parse_fault
from testbed.faults.catalogue.nic_cut import NicCut
from testbed.faults.catalogue.nic_rate import NicRate
from testbed.faults.parameters import Direction
from testbed.faults.parse import split_faults, usage
from testbed.incidents.actions import ACTIONS

EXAMPLES = {
    "broker-stall": "broker-stall host=b2 pause=1500ms every=20s",
    "clock-skew": "clock-skew host=b2 by=-90s",
    "client-stampede": "client-stampede host=load brokers=b1,b2 connections=50 requests=10 lasts=90s",
    "disk-full": "disk-full host=b2",
    "disk-read-only": "disk-read-only host=b2",
    "disk-slow": "disk-slow host=b2 rate=5MB/s",
    "memory-limit": "memory-limit host=b2 memory=900MiB",
    "nic-impair": "nic-impair host=b2 corrupt=1% duplicate=0.5% reorder=10% direction=transmit nic=data0",
    "objectstore-errors": "objectstore-errors host=s3 operations=put,list status=timeout share=20%",
    "reassignment-alter": "reassignment-alter partitions=3 to=b1,b2",
    "broker-kill": "broker-kill host=b2",
    "broker-pause": "broker-pause host=b2",
    "broker-restart": "broker-restart host=b2",
    "broker-term": "broker-term host=b2",
    "controller-failover": "controller-failover",
    "cpu-limit": "cpu-limit host=b2 cpus=0.25",
    "nic-cut": "nic-cut hosts=b1,b2 peers=b3 direction=transmit",
    "nic-down": "nic-down host=b2",
    "nic-rate": "nic-rate host=b2 rate=50mbit direction=receive",
    "objectstore-503": "objectstore-503 host=s1",
    "objectstore-down": "objectstore-down host=s1",
    "objectstore-full": "objectstore-full host=s1",
    "objectstore-restart": "objectstore-restart host=s1",
    "objectstore-slow": "objectstore-slow host=s1 pause=200ms every=300ms",
    "quota-alter": "quota-alter brokers=b1,b2 rate=1MB/s side=leader",
    "uplink-cut": "uplink-cut rack=r1",
    "uplink-rate": "uplink-rate rack=r1 rate=50mbit",
}


def test_every_kind_is_found_under_its_name():
    assert sorted(kinds()) == sorted(EXAMPLES)
    assert all(kind.kind == name and kind.summary for name, kind in kinds().items())


@pytest.mark.parametrize("text", EXAMPLES.values())
def test_every_fault_is_an_action_of_an_incident(text):
    kind, *words = text.split()
    action = ACTIONS[kind.replace("-", "_")].model_validate(dict(word.split("=", 1) for word in words))
    assert action.fault() == parse_fault(text)
    assert str(action) == text


@pytest.mark.parametrize("text", EXAMPLES.values())
def test_what_is_written_is_read_and_written_again(text):
    assert as_text(parse_fault(text)) == text


def test_parameters_are_values():
    assert parse_fault("nic-rate rate=1.5gbit host=b1") == NicRate("b1", 1_500_000_000, Direction.BOTH)
    assert parse_fault("nic-cut hosts=b1") == NicCut(("b1",), ("others",))
    assert as_text(parse_fault("nic-cut hosts=b1 direction=both")) == "nic-cut hosts=b1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no fault given; there are broker-kill, "),
        ("broker-kil host=b1", "no fault 'broker-kil'; there are .*; did you mean broker-kill?"),
        ("broker-kill", "host is missing: the host"),
        ("broker-kill b1", "b1: expected NAME=VALUE"),
        ("broker-kill hots=b1", "there is no parameter 'hots'; did you mean host?"),
        ("broker-kill host=b1 host=b2", "host=b2: host is given twice"),
        ("broker-kill host=", "host=: expected a name"),
        ("broker-restart host=b1 before=3", "there is no parameter 'before'"),
        ("nic-rate host=b1 rate=50", "50 has no unit; allowed: a number and kbit, mbit or gbit; did you mean 50mbit?"),
        ("nic-rate host=b1 rate=5MB/s", "5MB/s is a byte rate, not a bit rate; .* did you mean 40mbit?"),
        ("nic-rate host=b1 rate=0mbit", "allowed is from 8kbit to 100gbit; nic-down and nic-cut let nothing pass"),
        ("nic-rate host=b1 rate=1mbit direction=recieve", "transmit, receive or both; did you mean receive?"),
        ("nic-cut hosts=b1,,b2", "expected names with commas between them, such as b1,b2"),
        ("nic-cut hosts=b1,b1", "a name is given twice"),
        ("cpu-limit host=b1 cpus=half", "expected a number of CPUs, such as 0.5"),
        ("cpu-limit host=b1 cpus=nan", "0.01 to 1024 in hundredths"),
        ("cpu-limit host=b1 cpus=0", "0.01 to 1024 in hundredths"),
        ("cpu-limit host=b1 cpus=1e30", "0.01 to 1024 in hundredths"),
        ("quota-alter brokers=b1 rate=5mbit", "5mbit is a bit rate, not a byte rate; .*; or none, which removes it"),
        ("quota-alter brokers=b1 rate=none side=folower", "leader, follower or both; did you mean follower?"),
    ],
)
def test_mistakes_are_named(text, told):
    with pytest.raises(UsageError, match=told.replace("?", r"\?").replace("(", r"\(")):
        parse_fault(text)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(UsageError) as refused:
        parse_fault("nic-rate hots=b1 rate=50")
    told = str(refused.value)
    assert "written as `nic-rate host=… rate=… [direction=both] [nic=all]`" in told
    assert all(part in told for part in ("'hots'", "50 has no unit", "host is missing"))


def test_several_faults_in_one_row():
    words = ["broker-kill", "host=b2", "nic-rate host=b1 rate=1mbit", "controller-failover"]
    assert split_faults(words) == ["broker-kill host=b2", "nic-rate host=b1 rate=1mbit", "controller-failover"]


def test_usage_names_every_parameter():
    assert usage(kinds()["quota-alter"]) == "quota-alter brokers=… rate=… [side=both]"
