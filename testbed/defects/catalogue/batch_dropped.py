"""A follower leaves out a batch."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="batch-dropped",
    kind="data",
    summary="a follower does not append one batch in so many: its log has a gap",
    parameters=(whole("every", 200, "batches", 1, 2**63 - 1),),
    found_by=("records-intact", "live-records"),
)
