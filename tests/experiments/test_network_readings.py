"""What a reading of the shaping finds after the kernel announced changes."""

import pytest

from results.contract.network import LinkDifference
from testbed.experiments.network_readings import CHANGED, PUT_BACK, TAKEN_DOWN, change_differences, usual
from testbed.network.fabric import shaped_devices
from testbed.network.watch import DeviceChange
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
