"""Both throttles keep their first rate."""

from testbed.defects.defect import Defect, Exposure

DEFECT = Defect(
    name="throttle-change-ignored",
    kind="throttle",
    summary="both throttles keep the first rate that was set until the broker restarts",
    found_by=("rate-after-throttle-change", "throttle-changed"),
    shown_by=Exposure("kip73-live-change", ()),
)
