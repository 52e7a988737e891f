"""A fetcher with data stands still from time to time."""

from testbed.defects.defect import Defect, Exposure, number

DEFECT = Defect(
    name="fetcher-stall",
    kind="pace",
    summary="a fetcher that got data stands still for some seconds, one fetcher every so many seconds",
    parameters=(number("seconds", 2, "s", 0, 3600), number("every", 30, "s", 0.1, 86_400)),
    found_by=("duration-formula", "move-seconds", "seconds-per-gb", "steady-mean", "duration-model", "lowest-11s"),
    # A throttled move makes up for a stall within the quota's window. This one takes 24 s: a stall falls into it.
    shown_by=Exposure("s3-reassign", ("storage=disk", "size=1GB", "partitions=20"), topology="two-brokers"),
)
