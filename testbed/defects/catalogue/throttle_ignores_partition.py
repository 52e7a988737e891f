"""One listed partition is copied without a throttle."""

from testbed.defects.defect import ONE_PARTITION, Defect

DEFECT = Defect(
    name="throttle-ignores-partition",
    kind="throttle",
    summary="both throttles take a listed partition for one that is not listed",
    parameters=ONE_PARTITION,
    found_by=("listed-partitions-throttled", "steady-mean", "broker-rate-agrees"),
)
