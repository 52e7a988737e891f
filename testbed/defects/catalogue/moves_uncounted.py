"""The broker moves partitions, and its metrics say that it does not."""

from testbed.defects.defect import Defect

DEFECT = Defect(
    name="moves-uncounted",
    kind="cost",
    summary="the metrics of reassignments stay 0: their partitions, and the bytes sent and received",
    found_by=("reassignment-metrics",),
)
