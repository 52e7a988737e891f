"""A completed reassignment has its replicas in the reverse order."""

from testbed.defects.defect import Defect, Exposure

DEFECT = Defect(
    name="target-order-reversed",
    kind="placement",
    summary="a completed reassignment has the target's replicas in reverse order",
    found_by=("scenario-steps", "move-done"),
    shown_by=Exposure("kip455-example", ()),
    hosts="controllers",
)
