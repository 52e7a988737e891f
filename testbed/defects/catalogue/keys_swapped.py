"""A follower swaps two keys."""

from testbed.defects.defect import Defect, whole

DEFECT = Defect(
    name="keys-swapped",
    kind="data",
    summary="a follower swaps the keys of two records in one batch in so many, with a valid checksum",
    parameters=(whole("every", 200, "batches", 1, 2**63 - 1),),
    found_by=("records-intact", "live-records"),
)
