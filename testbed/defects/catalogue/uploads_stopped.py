"""A new leader uploads no segment to the object store."""

from testbed.defects.defect import Defect, Exposure

DEFECT = Defect(
    name="uploads-stopped",
    kind="placement",
    summary="a leader uploads no segments of a tiered partition that another broker led before",
    found_by=("new-leader-uploads",),
    shown_by=Exposure("s3-reassign", ("storage=tiered",), "smoke"),
)
