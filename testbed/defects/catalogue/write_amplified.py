"""The broker writes more to its disk than it appends to its logs."""

from testbed.defects.defect import UNTHROTTLED, Defect, whole

DEFECT = Defect(
    name="write-amplified",
    kind="cost",
    summary="after each append the broker writes the same bytes so many times to a file next to its logs",
    parameters=(whole("times", 2, "times the bytes", 1, 100),),
    found_by=("disk-writes", "broker-cpu-per-gb", "move-seconds", "seconds-per-gb", "duration-formula"),
    shown_by=UNTHROTTLED,
)
