"""The broker logs warnings without a cause: no criterion of a run judges them, but a comparison does."""

from testbed.defects.defect import Defect, number

DEFECT = Defect(
    name="warn-line",
    kind="cost",
    summary="the broker logs a WARN line every so many seconds",
    parameters=(number("every", 10, "s", 0.1, 86_400),),
    found_by=("log-lines",),
)
