"""A follower that has not caught up joins the ISR."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="early-isr",
    kind="placement",
    summary="the leader adds a follower to the ISR once it has a share of the committed offsets",
    parameters=(number("share", 0.9, "of the offsets", 0, 1),),
    found_by=("records-intact", "isr-expansion", "move-done"),
)
