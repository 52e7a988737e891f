"""What a reading of the shaping finds after the kernel announced changes."""

from types import SimpleNamespace

import pytest

from results.contract.network import LinkDifference
from testbed.experiments import network_readings
from testbed.experiments.network_readings import (
    CHANGED,
    PUT_BACK,
    TAKEN_DOWN,
    NetworkReadings,
    change_differences,
    usual,
)
from testbed.network.apply import NetworkError
from testbed.network.fabric import shaped_devices
from testbed.network.shaping_watch import DeviceChange
from testbed.topology.find import find

TWO = {(each.host or "", each.device): each for each in shaped_devices(find("two-brokers"))}
TWO_AT = {(each.where, each.device) for each in shaped_devices(find("two-brokers"))}
SLOW = LinkDifference("b2", "data0", "receive", "rate is 60mbit; declared is 400mbit")


def found(differences, *changes):
    return change_differences(
        changes, {(c.place, c.device): TWO.get((c.place, c.device)) for c in changes}, differences
    )


def test_a_changed_link_is_named_with_what_the_kernel_has():
    assert found([SLOW], DeviceChange("", "port1", "shaping")) == (SLOW,)


def test_a_change_that_was_undone_before_the_reading_is_named():
    assert found([], DeviceChange("b1", "data0", "shaping")) == (LinkDifference("b1", "data0", "transmit", PUT_BACK),)


def test_a_link_that_was_taken_down_is_named_whatever_its_shaping_is():
    down = LinkDifference("b2", "data0", "receive", TAKEN_DOWN)
    assert found([SLOW], DeviceChange("", "port1", "down")) == (SLOW, down)


def test_what_no_shaping_shows_is_named():
    changes = [DeviceChange("b1", "data0", what) for what in ("address", "mtu=900", "offload")]
    assert [each.found for each in found([], *changes)] == [
        "an address was added or removed",
        "its MTU was 900",
        "its offload was changed",
    ]
    assert found([], DeviceChange("b2", "rules", "rules")) == (
        LinkDifference("b2", "rules", None, "a rule of the firewall was changed"),
    )


@pytest.mark.parametrize(
    ("place", "device", "what", "none"),
    [
        ("b1", "data0", "mtu=1500", True),
        ("b1", "data0", "mtu=900", False),
        ("", "port1", "mtu=900", False),
        ("b1", "eth0", "mtu=1450", True),
        ("b1", "lo", "mtu=65536", True),
        ("", "rack0", "offload", True),
        ("", "port1", "offload", False),
        ("b1", "data0", "shaping", False),
        ("", "core", "shaping", False),
    ],
)
def test_a_device_that_has_its_mtu_was_not_changed(place, device, what, none):
    assert usual(DeviceChange(place, device, what), TWO_AT, 1500) is none


def test_a_device_that_the_topology_does_not_shape_is_named_as_it_is():
    assert found([], DeviceChange("", "core", "shaping")) == (LinkDifference("fabric", "core", None, CHANGED),)


def test_a_nic_that_is_gone_after_the_run_is_a_difference_and_loses_no_run(monkeypatch):
    """The run ended with *Cannot find device* when it had been measured, and none of its samples was stored."""
    gone = set()

    def differences(devices, _places):
        if gone & {(each.host, each.device) for each in devices}:
            raise NetworkError("b2: `tc -j qdisc show dev data0` failed: Cannot find\ndevice data0")
        return []

    monkeypatch.setattr(network_readings, "link_differences", differences)
    watch = SimpleNamespace(changes=set, close=lambda: None)
    testbed = SimpleNamespace(
        topology=find("two-brokers"), places=dict, watch_shaping=lambda: watch, state=SimpleNamespace(mtu=1500)
    )
    with NetworkReadings(testbed) as readings:
        gone.add(("b2", "data0"))
        [before, after] = readings.record().readings
    assert (before.when, before.differences) == ("before", ())
    text = "its shaping could not be read: b2: `tc -j qdisc show dev data0` failed: Cannot find device data0"
    assert after.differences == (LinkDifference("b2", "data0", "transmit", text),)
    with pytest.raises(NetworkError):
        NetworkReadings(testbed)
