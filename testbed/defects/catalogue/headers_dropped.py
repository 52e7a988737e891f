"""A follower leaves out headers."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="headers-dropped",
    kind="data",
    summary="a follower leaves out the headers of one batch in so many, with a valid checksum",
    parameters=(whole("every", 200, "batches", 1, 2**63 - 1),),
    found_by=("records-intact", "live-records"),
)
