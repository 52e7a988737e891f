"""The broker uses more CPU."""

from testbed.defects.defect import UNTHROTTLED, Defect, number

DEFECT = Defect(
    name="cpu-burn",
    kind="cost",
    summary="the broker burns a share of its own CPU time in addition, at most one core",
    parameters=(number("share", 0.5, "of its CPU time", 0, 10),),
    found_by=("broker-cpu-per-gb", "cpu-per-gb"),
    shown_by=UNTHROTTLED,
)
