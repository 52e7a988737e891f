"""A cancelled reassignment leaves a replica that it was adding."""

from testbed.defects.defect import Defect, Exposure

DEFECT = Defect(
    name="cancel-keeps-adding",
    kind="placement",
    summary="a cancelled reassignment leaves the first of the replicas that it was adding",
    found_by=("scenario-steps", "trace-whole"),
    shown_by=Exposure("kip455-cancel", ()),
    hosts="controllers",
)
