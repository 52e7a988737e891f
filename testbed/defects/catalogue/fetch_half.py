"""Followers ask for half the bytes."""

from testbed.defects.defect import Defect, Exposure

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
    shown_by=Exposure("s3-reassign", ("storage=disk", "size=500MB", "partitions=20"), topology="two-brokers"),
)
