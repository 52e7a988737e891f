"""The follower's throttle lets more in than its quota."""

from testbed.defects.defect import Defect, Exposure, number

DEFECT = Defect(
    name="follower-throttle-leak",
    kind="throttle",
    summary="the follower's throttle does not count a share of the bytes that it receives",
    parameters=(number("share", 0.05, "of the bytes", 0, 1),),
    found_by=("steady-mean", "broker-rate-agrees", "throttled-window", "long-window-bound", "duration-model"),
    shown_by=Exposure("kip73-two-to-one", ("fetch=tuned", "rate=10MB/s")),
    sizes=("share=0.02", "share=0.05", "share=0.1", "share=0.25"),
)
