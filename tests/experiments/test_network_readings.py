"""What a reading of the shaping finds after the kernel announced changes."""

from results.contract.network import LinkDifference
from testbed.experiments.network_readings import CHANGED, PUT_BACK, TAKEN_DOWN, change_differences
from testbed.network.fabric import shaped_devices
from testbed.network.watch import DeviceChange
from testbed.topology.find import find

TWO = {(each.host or "", each.device): each for each in shaped_devices(find("two-brokers"))}
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


def test_a_device_that_the_topology_does_not_shape_is_named_as_it_is():
    assert found([], DeviceChange("", "core", "shaping")) == (LinkDifference("fabric", "core", None, CHANGED),)
