"""A leader gives clients an end of its log that is too low: a consumer that begins there gets earlier records."""

from testbed.defects.defect import UNDER_LOAD, Defect, whole

DEFECT = Defect(
    name="end-too-low",
    kind="data",
    summary="a leader answers clients that ask for the end of its log with an offset so many records below",
    parameters=(whole("records", 100, "records", 1, 2**31 - 1),),
    found_by=("live-records",),
    shown_by=UNDER_LOAD,
)
