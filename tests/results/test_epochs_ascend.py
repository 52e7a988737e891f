"""The criterion `epochs-ascend`: a trace passes as the controller writes it, and fails with one stale state."""

import pytest

from results.criteria import judge
from tests.results.stepped import LOGGED, POLLED, stepped


def trace(*epochs):
    """Return the events of a trace whose states have these partition and leader epochs."""
    changed = [
        event._replace(detail={**event.detail, "partition_epoch": partition, "leader_epoch": leader})
        for event, (partition, leader) in zip(LOGGED, epochs, strict=True)
    ]
    return (*changed, *POLLED)


def verdict(*epochs):
    found = judge(*stepped(events=trace(*epochs))).criteria
    [only] = [each for each in found if each.name == "epochs-ascend"]
    return only.verdict, only.why


def test_a_trace_as_the_controller_writes_it_passes():
    assert verdict((0, 0), (1, 0), (2, 1)) == ("pass", "2 changes of 1 partition")


@pytest.mark.parametrize(
    ("epochs", "why"),
    [
        (((0, 0), (2, 0), (1, 1)), "partition epoch 2 then 1, leader epoch 0 then 1"),
        (((0, 0), (1, 0), (1, 1)), "partition epoch 1 then 1, leader epoch 0 then 1"),
        (((0, 1), (1, 1), (2, 0)), "partition epoch 1 then 2, leader epoch 1 then 0"),
    ],
)
def test_a_stale_state_fails(epochs, why):
    assert verdict(*epochs) == ("fail", f"kip455-0: {why}")


def test_a_trace_without_epochs_is_not_judged():
    found = judge(*stepped()).criteria
    assert "epochs-ascend" not in {each.name for each in found}
