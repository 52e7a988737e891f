"""Each append to a log takes longer."""

from testbed.defects.defect import UNTHROTTLED, Defect, number

DEFECT = Defect(
    name="append-slow",
    kind="pace",
    summary="each append to a log takes some percent longer, as busy time",
    parameters=(number("percent", 10, "%", 0, 100_000),),
    found_by=("duration-formula", "move-seconds", "seconds-per-gb", "broker-cpu-per-gb", "cpu-per-gb"),
    shown_by=UNTHROTTLED,
    sizes=("percent=5", "percent=10", "percent=30"),
)
