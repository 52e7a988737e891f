"""Both throttles average over twice the time."""

from testbed.defects.defect import Defect

DEFECT = Defect(
    name="throttle-window-doubled",
    kind="throttle",
    summary="both throttles keep twice the samples: they average over a window twice as long",
    found_by=("throttled-window", "broker-rate-agrees"),
)
