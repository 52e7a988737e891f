"""A fetcher with data stands still from time to time."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="fetcher-stall",
    kind="pace",
    summary="a fetcher that got data stands still for some seconds, one fetcher every so many seconds",
    parameters=(number("seconds", 2, "s", 0, 3600), number("every", 30, "s", 0.1, 86_400)),
    found_by=("duration-formula", "move-seconds", "seconds-per-gb", "steady-mean", "duration-model", "lowest-11s"),
)
