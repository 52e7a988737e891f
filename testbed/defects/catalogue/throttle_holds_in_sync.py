"""Both throttles hold back replicas that are in sync, as before KAFKA-4313."""

from testbed.defects.defect import Defect, Exposure

DEFECT = Defect(
    name="throttle-holds-in-sync",
    kind="throttle",
    summary="both throttles also hold back listed replicas that are in sync (KAFKA-4313)",
    found_by=("no-isr-shrink", "in-sync-unbounded"),
    shown_by=Exposure("kip73-mixed-volume", ()),
)
