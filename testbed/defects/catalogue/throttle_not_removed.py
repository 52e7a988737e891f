"""Both throttles stay in force after their removal.

The lists of a move name its replicas, and on the way back other brokers lead and follow. With `*` they name all.
"""

from testbed.defects.defect import Defect, Exposure, text

DEFECT = Defect(
    name="throttle-not-removed",
    kind="throttle",
    summary="both throttles keep their rate and the lists of their partitions when these are removed",
    parameters=(text("topic", "", "the topic whose lists stay; empty for every topic"),),
    found_by=("control-unthrottled", "scenario-steps"),
    shown_by=Exposure("kip73-mixed-volume", ()),
)
