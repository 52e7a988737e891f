"""A leader appends a batch twice."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="batch-doubled",
    kind="data",
    summary="a leader appends one produced batch in so many a second time",
    parameters=(whole("every", 200, "batches", 1, 2**63 - 1),),
    found_by=("records-intact", "live-records"),
)
