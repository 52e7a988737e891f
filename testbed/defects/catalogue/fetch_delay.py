"""Each answer with data reaches the follower's log later."""

from testbed.defects.defect import UNTHROTTLED, Defect, whole

DEFECT = Defect(
    name="fetch-delay",
    kind="pace",
    summary="each fetch of a follower that brings data takes some milliseconds longer",
    parameters=(whole("ms", 5, "ms", 0, 60_000),),
    found_by=("duration-formula", "move-seconds", "seconds-per-gb"),
    shown_by=UNTHROTTLED,
    sizes=("ms=2", "ms=5", "ms=20"),
)
