"""The broker asks itself for the metadata of all topics all the time."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="metadata-stampede",
    kind="cost",
    summary="the broker sends Metadata requests for all topics to its own listener, so many a second",
    parameters=(number("per_second", 200, "1/s", 0.1, 100_000),),
    found_by=("metadata-requests", "broker-cpu-per-gb", "cpu-per-gb"),
)
