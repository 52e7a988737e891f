"""The bound that a replication quota puts on the bytes of any window. `docs/throttle-bound.md` derives it."""

from results.verdict import Direction


def window_bound(
    quota_bytes_per_s: float,
    elapsed_s: float,
    direction: Direction,
    *,
    fetchers: int,
    response_max_bytes: int,
    sample_s: float,
) -> float:
    """Most throttled bytes a broker may move in `elapsed_s` seconds (one quota window or more).

    The quota is a check before each fetch, and one whole response per fetcher may follow. Kafka's window
    edges are samples of `sample_s`, not instants, which adds one sample's worth. `fetchers` is how many
    carry throttled bytes through this broker in this direction.
    """
    responses = fetchers * response_max_bytes
    one_sample = quota_bytes_per_s * sample_s
    if direction == "receive":
        return quota_bytes_per_s * elapsed_s + one_sample + responses
    return quota_bytes_per_s * elapsed_s + responses + max(one_sample, responses)
