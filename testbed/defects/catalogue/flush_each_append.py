"""The broker waits for the disk after each append to a log."""

from testbed.defects.defect import UNTHROTTLED, Defect, whole

DEFECT = Defect(
    name="flush-each-append",
    kind="pace",
    summary="the broker flushes a log after each append to it, or after one append in so many",
    parameters=(whole("every", 1, "appends", 1, 2**31 - 1),),
    found_by=("duration-formula", "move-seconds", "seconds-per-gb", "produce-p50", "consume-p50", "broker-cpu-per-gb"),
    shown_by=UNTHROTTLED,
)
