"""Settings at their borders: a run is refused in one line before anything is provisioned, or it can be made."""

from contextlib import suppress

import pytest

from testbed.errors import UsageError
from testbed.experiments.experiment import experiments, find_experiment, read_settings
from testbed.experiments.layout import RECORD_BYTES

BORDERS = {
    "0": ("0", "0B", "0s", "0B/s", "0mbit", "-1", "-1B", "-1s", "-1B/s", "", "none"),
    "least": ("1", "2", "1B", "1us", "1B/s", "1bit"),
    "most": ("9" * 5000, "10000", "100000", "3GiB", "900000GB", "10000h", "900000GB/s", "900gbit"),
}


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("name", [name for name, each in experiments().items() if each.parameters])
def test_a_value_at_its_border_is_taken_or_refused_and_never_an_error_of_another_kind(name, border):
    experiment = find_experiment(name)
    for parameter in experiment.parameters:
        for value in BORDERS[border]:
            with suppress(UsageError):
                experiment.overlay(read_settings(experiment, "ci", [f"{parameter.name}={value}"]))


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("kip73-two-node", ["rate=0B/s"], "--set rate=0B/s: expected more than 0"),
        ("kip73-two-node", ["preload=0s"], "--set preload=0s: expected more than 0"),
        ("kip73-two-node", ["rate=1B/s"], "52B in 100 partitions is less than half a record of 4KiB in each"),
        ("kip73-two-node", ["partitions=" + "9" * 5000], "expected a whole number from 2 to 10000"),
        ("kip73-two-node", ["partitions=\u0665"], "expected a whole number from 2 to 10000"),
        ("kip73-two-node", ["reassignment-batch-size=0"], "expected a whole number from 1 to 100000, or none"),
        ("kip73-mixed-volume", ["rate=0B/s"], "rate=0B/s: expected more than 0"),
        ("kip73-mixed-volume", ["lag=300ms"], "expected 500ms or more: a broker does not start"),
        ("kip73-mixed-volume", ["response=3GiB"], "expected 1B to "),
        ("kip73-mixed-volume", ["lag=1s"], "lag=1s is less than a fetch of a healthy follower may take"),
        ("kip73-fetch-size", ["response=0B"], "expected 1B to "),
        ("kip73-live-change", ["lowered=0B/s"], "lowered=0B/s: expected more than 0"),
        ("kip73-live-change", ["raised=5MB/s"], "raised=5MB/s is not above rate=5MB/s"),
        ("kip73-live-change", ["lowered=9MB/s"], "lowered=9MB/s is not below raised=9MB/s"),
        ("kip73-live-change", ["lowered=1kB/s"], "lowered=1kB/s is too low: what healthy brokers leave"),
        ("kip73-stuck", ["patience=0s"], "patience=0s: expected more than 0"),
        ("kip73-nic-bound", ["nic=0mbit"], "nic=0mbit: expected more than 0"),
        ("kip73-many", ["partitions=4"], "partitions=4: each of 5 brokers leads one; give 5 or more"),
        ("kip73-upgrade", ["direction=down"], "direction=down needs another Kafka"),
        ("kip73-upgrade", ["finalize=yes"], "finalize=yes needs another Kafka in `to`, not same"),
        ("kip73-two-node-produce", ["rate=3MB/s", "inbound=2.5MB/s", "size=64B"], "2.5MB/s, is 3.12MB/s in logs"),
        ("kip73-two-node", ["leaders=1"], "leaders changes nothing with mode=unbatched"),
        ("kip435-example", ["partitions=4"], "partitions=4: each of 5 brokers leads one"),
        ("kip435-rf4", ["lowered=6MB/s"], "lowered=6MB/s is not below rate=6MB/s"),
        ("kip435-exchange", ["starts=1"], "starts changes nothing with mode=unbatched"),
        ("kip435-exchange", ["mode=batched", "starts=1"], "starts changes nothing with mode=batched"),
        ("kip435-exchange", ["per-broker=1"], "per-broker changes nothing with mode=unbatched"),
        ("scale-in", ["partitions=2"], "with partitions=2 no partition moves; give more"),
        ("scale-out", ["partitions=1"], "with partitions=1 no partition moves; give more"),
        ("s3-reassign", ["size=0B"], "size=0B: expected more than 0"),
        ("cold-read", ["read=0B"], "read=0B: expected more than 0"),
        ("cold-read", ["storage=tiered", "partitions=100", "size=1.2GB"], "100 tiered partitions keep a segment"),
    ],
)
def test_what_could_not_be_run_is_refused_before_anything_is_provisioned(name, given, why):
    experiment = find_experiment(name)
    with pytest.raises(UsageError) as caught:
        experiment.overlay(read_settings(experiment, "ci", given))
    assert why in str(caught.value)


@pytest.mark.parametrize("name", ["scale-in", "scale-out"])
def test_the_fewest_partitions_that_scale_are_accepted(name):
    experiment = find_experiment(name)
    experiment.overlay(read_settings(experiment, "ci", ["partitions=3"]))


def test_a_partition_with_a_record_is_enough():
    experiment = find_experiment("kip73-two-node")
    experiment.overlay(read_settings(experiment, "ci", [f"rate={100 * RECORD_BYTES}B/s", "preload=1s"]))
