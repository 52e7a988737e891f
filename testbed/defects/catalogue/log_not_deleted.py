"""A removed replica's log stays on the disk."""

from testbed.defects.defect import Defect

DEFECT = Defect(
    name="log-not-deleted",
    kind="placement",
    summary="a broker keeps the log of a replica that was removed from it",
    found_by=("move-done",),
)
