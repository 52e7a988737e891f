"""A follower changes timestamps."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="timestamp-changed",
    kind="data",
    summary="a follower makes the records of one batch in so many a second older, with a valid checksum",
    parameters=(whole("every", 200, "batches", 1, 2**63 - 1),),
    found_by=("records-intact", "live-records"),
)
