"""A leader stays slow in the partitions that it took over."""

from testbed.defects.defect import Defect, Exposure, whole

DEFECT = Defect(
    name="taken-over-slow",
    kind="pace",
    summary="a leader waits some milliseconds before each append to a partition that another broker led before",
    parameters=(whole("ms", 100, "ms", 0, 60_000),),
    found_by=("p99-recovery",),
    shown_by=Exposure("scale-in", ("storage=disk",), "smoke", topology="three-brokers"),
)
