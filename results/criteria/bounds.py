"""The bound that a replication quota puts on the bytes of any window. `docs/throttle-bound.md` derives it."""

from results.verdict import Direction


def window_bound(
    quota_bytes_per_s: float,
    direction: Direction,
    *,
    fetchers: int,
    response_max_bytes: int,
    window_s: float,
    sample_s: float,
) -> float:
    """Most throttled bytes that followers' logs may grow by in a window of at most `window_s` (Kafka: 11 s).

    `fetchers` is how many carry throttled bytes through this broker in this direction. The quota is a check before each
    fetch, after which one whole response per fetcher may follow; and the edges of Kafka's window are samples of
    `sample_s`, not instants. A window even a little longer than `window_s` is not covered.
    """
    in_window, in_sample = quota_bytes_per_s * window_s, quota_bytes_per_s * sample_s
    if direction == "receive":
        return in_window + in_sample + fetchers * response_max_bytes
    return in_window + (2 * fetchers - 1) * response_max_bytes + max(in_sample, response_max_bytes)
