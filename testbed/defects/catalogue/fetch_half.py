"""Followers ask for half the bytes."""

from testbed.defects.defect import UNTHROTTLED, Defect

DEFECT = Defect(
    name="fetch-half",
    kind="pace",
    summary="followers ask for half of replica.fetch.response.max.bytes in each fetch",
    found_by=(
        "duration-formula",
        "move-seconds",
        "seconds-per-gb",
        "fetches-per-gb",
        "broker-cpu-per-gb",
        "cpu-per-gb",
    ),
    shown_by=UNTHROTTLED,
)
