"""A follower that caught up joins the ISR late."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="late-isr",
    kind="placement",
    summary="the leader adds a follower to the ISR some seconds after it caught up",
    parameters=(number("seconds", 10, "s", 0, 3600),),
    found_by=("isr-expansion", "duration-model", "move-seconds"),
)
