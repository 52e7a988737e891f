"""Runs with the interpreter of another environment, in which Otava is installed; alone, and nothing of ours imported.

Reads JSON from standard input: `series` (lists of values), `first` (the first night that counts), `window` (so many
newest runs are analysed each night). Writes a list for each series: [night, first run after the change] of each change
point that was not reported before; what is already there on the night before `first` is not counted.
"""

import json
import sys

from otava.analysis import compute_change_points  # type: ignore[import-not-found]

NEAR = 5
"""A change point that comes up within so many runs of one that was reported is the same."""


def nights(values: list[float], first: int, window: int) -> list[list[int]]:
    """Return the new change points, night by night."""
    known: list[int] = []
    found = []
    for night in range(first - 1, len(values)):
        start = max(0, night + 1 - window)
        points, _ = compute_change_points(values[start : night + 1], window_len=50, max_pvalue=0.001)
        for index in sorted(start + int(point.index) for point in points):
            if all(abs(index - old) > NEAR for old in known):
                known.append(index)
                if night >= first:
                    found.append([night, index])
    return found


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump([nights(values, asked["first"], asked["window"]) for values in asked["series"]], sys.stdout)
