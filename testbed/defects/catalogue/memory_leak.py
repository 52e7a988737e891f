"""The broker loses memory."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="heap-leak",
    kind="cost",
    summary="the broker leaks memory at a pace, up to a share of its heap",
    parameters=(number("mb_per_s", 4, "MB/s", 0, 100_000), number("share", 0.5, "of its heap", 0, 1)),
    found_by=("jvm-pauses",),
)
