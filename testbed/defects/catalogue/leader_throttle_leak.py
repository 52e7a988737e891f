"""The leader's throttle lets more pass than its quota."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="leader-throttle-leak",
    kind="throttle",
    summary="the leader's throttle does not count a share of the bytes that it sends",
    parameters=(number("share", 0.05, "of the bytes", 0, 1),),
    found_by=("steady-mean", "broker-rate-agrees", "throttled-window", "long-window-bound", "duration-model"),
    sizes=("share=0.02", "share=0.05", "share=0.1", "share=0.25"),
)
