"""A follower swaps two batches."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="batch-reordered",
    kind="data",
    summary="a follower appends two batches in the wrong order, once in so many batches",
    parameters=(whole("every", 200, "batches", 1, 2**63 - 1),),
    found_by=("records-intact", "live-records"),
)
