"""A new leader loses the end of its log."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="acked-lost",
    kind="data",
    summary="a follower that becomes leader loses its last acknowledged records",
    parameters=(whole("records", 1, "records", 1, 2**31 - 1),),
    found_by=("records-intact", "live-records"),
)
