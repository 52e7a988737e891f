"""Moves of data in S3, compared with moves on disk: reassigning, scaling, cold reads, the throttle. See docs/s3.md."""

from testbed.suites.suite import suite_of_experiments

SUITE = suite_of_experiments(
    "s3",
    "Does a move in S3 take seconds whatever the size, on tiered storage and on AutoMQ, and what does it cost?",
    release_limit_s=1800.0,
)
