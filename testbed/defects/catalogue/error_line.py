"""The broker logs errors without a cause."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="error-line",
    kind="cost",
    summary="the broker logs an ERROR line every so many seconds",
    parameters=(number("every", 60, "s", 0.1, 86_400),),
    found_by=("logs-clean",),
)
