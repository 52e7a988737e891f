"""The controller elects the last replica where it should elect the first."""

from testbed.defects.defect import Defect, Exposure

DEFECT = Defect(
    name="wrong-preferred-leader",
    kind="placement",
    summary="the controller elects the last replica in sync as a new leader, not the first",
    found_by=("scenario-steps",),
    shown_by=Exposure("kip455-preferred-leader", ()),
    hosts="controllers",
)
