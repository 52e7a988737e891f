"""KIP-435's own layouts: who moves where, that in-sync traffic fits under the throttle, and who watches."""

import pytest

from testbed.errors import UsageError
from testbed.experiments.catalogue import kip435
from testbed.experiments.experiment import find_experiment, read_settings
from testbed.experiments.kip73_layouts import led_by_one, whole_move
from testbed.experiments.layout import carried, flows
from testbed.experiments.throttled_move import limits, mode_of
from testbed.reassignment.batching.batch import BatchLimits
from testbed.throttle.duration import seconds

HOSTS = tuple("ABCDEFGH")
EXCHANGE, RF4 = find_experiment("kip435-exchange"), find_experiment("kip435-rf4")


def settings(experiment, *given, profile="ci"):
    return read_settings(experiment, profile, given)


def test_every_partition_goes_from_one_half_to_the_other_and_each_leads_as_many():
    found = whole_move(settings(EXCHANGE, "partitions=10"), HOSTS[:4])
    assert [(group.current, group.target) for group in found.throttled] == [
        (("A", "B"), ("C", "D")),
        (("B", "A"), ("D", "C")),
    ]
    assert [list(group.partitions) for group in found.throttled] == [list(range(5)), list(range(5, 10))]
    assert sum(group.inbound_bytes_per_s for group in found.throttled) == pytest.approx(1_000_000)
    assert found.min_insync == 2


@pytest.mark.parametrize("profile", ["smoke", "ci", "release"])
def test_at_once_it_takes_as_long_as_asked_for(profile):
    chosen = settings(EXCHANGE, profile=profile)
    found = whole_move(chosen, HOSTS[:4])
    ids = {host: number for number, host in enumerate(HOSTS)}
    predicted = seconds(carried(found, ids), chosen["rate"])
    assert predicted == pytest.approx(chosen["preload"], rel=0.5)


@pytest.mark.parametrize("experiment", kip435.EXPERIMENTS, ids=lambda each: each.name)
def test_a_smaller_profile_moves_no_more_at_no_higher_rate(experiment):
    chosen = [settings(experiment, profile=profile) for profile in ("smoke", "ci", "release")]
    for name in ("rate", "preload"):
        sizes = [each[name] for each in chosen]
        assert sizes == sorted(sizes), name
    assert chosen[0] != chosen[2]


def test_four_replicas_moved_whole_are_eight_of_which_seven_follow():
    found = led_by_one(settings(RF4), HOSTS)
    listed = [flow for flow in flows(found) if flow.kind in ("throttled", "in_sync")]
    assert {flow.leader for flow in listed} == {"A"}
    assert sorted(flow.follower for flow in listed) == list("BCDEFGH")
    assert found.control is None


def test_a_throttle_that_all_replicas_of_both_halves_use_up_is_refused():
    with pytest.raises(UsageError, match="never makes progress"):
        RF4.overlay(settings(RF4, "inbound=900kB/s"))


def test_the_throttle_is_lowered_below_what_replicas_in_sync_take_and_raised_again():
    chosen = settings(RF4)
    during = kip435._action(chosen, HOSTS)
    assert during._rates == [1_000_000, 6_000_000]
    assert 3 * chosen["inbound"] > chosen["lowered"]
    assert during.slowest_bytes_per_s == 6_000_000
    assert EXCHANGE.overlay(settings(EXCHANGE)) and not RF4.overlay(chosen)


@pytest.mark.parametrize("given", [("inbound=none",), ("inbound=300kB/s",), ("compression=lz4", "redundancy=0.8")])
def test_a_lowered_throttle_that_replicas_in_sync_do_not_exceed_is_refused(given):
    """`in-sync-unbounded` failed of a healthy Kafka: nothing was sent beyond the throttle."""
    with pytest.raises(UsageError, match="lowered=1MB/s is not below what 3 replicas in sync take of inbound="):
        RF4.overlay(settings(RF4, *given))
    RF4.overlay(settings(RF4, *given, "mode=batched"))
    RF4.overlay(settings(RF4, "inbound=300kB/s", "lowered=500kB/s"))


@pytest.mark.parametrize("experiment", [EXCHANGE, RF4], ids=lambda each: each.name)
def test_r_p_and_l_are_limits_and_none_is_none(experiment):
    assert limits(settings(experiment)) == BatchLimits(1, 5, None)
    given = ("mode=incremental", "replicas=none", "reassignment-batch-size=none", "leaders=3")
    chosen = settings(experiment, *given)
    assert (limits(chosen), mode_of(chosen)) == (BatchLimits(None, None, 3), "incremental")
    assert mode_of(settings(experiment)) == "unbatched"
