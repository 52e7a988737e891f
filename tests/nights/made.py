"""What the tests of nights are made of."""

from results.nights.night import SeriesInfo
from tools.generate import START

BEGIN = round(START.timestamp()) * 1_000_000
"""When their nights begin, in microseconds."""


def about_of(series="s1", **other):
    """A series by what differs from a usual one."""
    usual = {
        "series": series,
        "scenario": "sc",
        "experiment": "move",
        "parameters": '{"quota": 1}',
        "environment": "e1",
        "environment_details": '{"kernel": "6.1"}',
        "metric": "seconds",
        "unit": "s",
        "better": "lower",
        "runs": 40,
        "newest": BEGIN,
        "newest_value": BEGIN,
        "run_id": "20240101T020000Z-move-000001",
        "kafka": "4.3.1",
        "verdict": "pass",
    }
    return SeriesInfo(**{**usual, **other})
