"""The controller leaves a partition without a leader when it completes its reassignment."""

from testbed.defects.defect import ONE_PARTITION, Defect, Exposure

DEFECT = Defect(
    name="leaderless",
    kind="placement",
    summary="a completed reassignment leaves a partition without a leader",
    parameters=ONE_PARTITION,
    found_by=("move-done", "scenario-steps"),
    # The runner waits for three times the throttle's time and a minute in vain: the move is a short one.
    shown_by=Exposure(settings=("fetch=tuned", "rate=5MB/s", "preload=30s", "partitions=20")),
    hosts="controllers",
    # The calibration and the control have four partitions each. Without a leader in the calibration, it never ends.
    sizes=("partition=7",),
)
