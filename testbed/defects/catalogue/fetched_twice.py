"""A follower fetches all data twice."""

from testbed.defects.defect import Defect

DEFECT = Defect(
    name="fetched-twice",
    kind="cost",
    summary="a follower sends each fetch that brought data a second time, and discards the answer",
    found_by=("wire-overhead", "nic-mean", "fetches-per-gb", "broker-cpu-per-gb", "cpu-per-gb"),
)
