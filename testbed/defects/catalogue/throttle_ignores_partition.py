"""One listed partition is copied without a throttle."""

from testbed.defects.defect import Defect, text, whole

DEFECT = Defect(
    name="throttle-ignores-partition",
    kind="throttle",
    summary="both throttles take a listed partition for one that is not listed",
    parameters=(
        whole("partition", 0, "the partition's number", 0, 2**31 - 1),
        text("topic", "", "the topic; empty for every topic"),
    ),
    found_by=("listed-partitions-throttled", "steady-mean", "broker-rate-agrees"),
)
