"""A follower flips a bit."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="bit-flipped",
    kind="data",
    summary="a follower flips one bit of a value in one batch in so many, with a valid checksum",
    parameters=(whole("every", 200, "batches", 1, 2**63 - 1),),
    found_by=("records-intact", "live-records"),
)
