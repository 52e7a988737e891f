"""A leader withholds the newest records of a partition from consumers, and gives them to followers."""

from testbed.defects.defect import ONE_PARTITION, UNDER_LOAD, Defect, whole

DEFECT = Defect(
    name="records-withheld",
    kind="data",
    summary="a leader never gives consumers the newest records of a partition",
    parameters=(*ONE_PARTITION, whole("records", 1, "records", 1, 2**31 - 1)),
    found_by=("live-records", "records-intact"),
    shown_by=UNDER_LOAD,
)
