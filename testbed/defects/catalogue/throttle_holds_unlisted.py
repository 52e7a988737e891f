"""Partitions that no list names are held back, too."""

from testbed.defects.defect import Defect

DEFECT = Defect(
    name="throttle-holds-unlisted",
    kind="throttle",
    summary="both throttles also hold back partitions that no list names",
    found_by=("control-unthrottled",),
)
