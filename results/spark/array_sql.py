"""SQL over a series kept as one sorted array of structs per row: windows without joins, gaps, medians.

A run's series has some hundred points, so that quadratic steps inside a row are cheaper than shuffling it.
"""


def sorted_array(fields: str) -> str:
    """Rows of a group as an array of structs, sorted by the first field."""
    return f"array_sort(collect_list(struct({fields})))"


def last_at_or_before(series: str, instant: str) -> str:
    """The last point with us <= instant; null when there is none."""
    return f"try_element_at(filter({series}, q -> q.us <= {instant}), -1)"


def first_at_or_after(series: str, instant: str) -> str:
    """The first point with us >= instant; null when there is none."""
    return f"get(filter({series}, q -> q.us >= {instant}), 0)"


def pairs(series: str, least_us: str) -> str:
    """For each point that has one: the shortest window of at least `least_us` that begins there."""
    return f"""flatten(transform({series}, a ->
        transform(slice(filter({series}, b -> b.us >= a.oldest + {least_us}), 1, 1), b ->
            struct(a.us AS start_us, b.us AS stop_us, (b.us - a.oldest) / 1e6D AS elapsed_s,
                   b.value - a.value AS bytes))))"""


def pairs_within(series: str, most_us: str) -> str:
    """For each point that has one: the longest window of at most `most_us` that begins there."""
    return f"""flatten(transform({series}, a ->
        transform(slice(reverse(filter({series}, b -> b.us > a.us AND b.us <= a.oldest + {most_us})), 1, 1), b ->
            struct(b.value - a.value AS bytes, a.us AS start_us, b.us AS stop_us,
                   (b.us - a.oldest) / 1e6D AS elapsed_s))))"""


def pair_rates(windows: str) -> str:
    """Bytes per second of each window."""
    return f"transform({windows}, w -> w.bytes / w.elapsed_s)"


def mean(values: str) -> str:
    """Arithmetic mean of an array; null when it is empty."""
    return f"aggregate({values}, 0D, (m, v) -> m + v) / nullif(size({values}), 0)"


def deviation(values: str, average: str) -> str:
    """Population standard deviation of an array with the given mean."""
    squares = f"aggregate({values}, 0D, (m, v) -> m + (v - {average}) * (v - {average}))"
    return f"sqrt({squares} / nullif(size({values}), 0))"


def median(values: str) -> str:
    """Exact median of an array; null when it is empty."""
    ordered = f"array_sort({values})"
    n = f"size({values})"
    return f"(get({ordered}, CAST(({n} - 1) DIV 2 AS INT)) + get({ordered}, CAST({n} DIV 2 AS INT))) / 2"


def gap_s(series: str, start_us: str, end_us: str, *, inside: bool = False) -> str:
    """Longest time without a reading from start to end, null without any reading; see `windows.longest_gap_s`."""
    first = f"coalesce({last_at_or_before(series, start_us)}.us, get({series}, 0).us)"
    last = f"coalesce({first_at_or_after(series, end_us)}.us, try_element_at({series}, -1).us)"
    step = f"least(n.us, {end_us}) - greatest(o.us, {start_us})" if inside else "n.us - o.us"
    steps = f"""zip_with(slice({series}, 2, greatest(size({series}) - 1, 0)),
                         slice({series}, 1, greatest(size({series}) - 1, 0)),
                         (n, o) -> CASE WHEN o.us >= {first} AND n.us <= {last} THEN {step} END)"""
    longest = f"greatest(array_max({steps}), {first} - {start_us}, {end_us} - {last}, 0L)"
    return f"CASE WHEN size({series}) > 0 THEN {longest} / 1e6D END"


def counted(points: str) -> str:
    """What a counter counted over its readings; when it goes back it has begun anew, at 0."""
    return f"""aggregate(zip_with(slice({points}, 2, greatest(size({points}) - 1, 0)),
                                  slice({points}, 1, greatest(size({points}) - 1, 0)),
                                  (n, o) -> CASE WHEN n.value >= o.value THEN n.value - o.value ELSE n.value END),
                         0D, (m, v) -> m + v)"""


def around(series: str, start_us: str, end_us: str) -> str:
    """The readings from the last at or before start (or the first) to the first at or after end; null without that."""
    first = f"coalesce({last_at_or_before(series, start_us)}.us, get({series}, 0).us)"
    last = f"{first_at_or_after(series, end_us)}.us"
    return f"CASE WHEN {last} IS NOT NULL THEN filter({series}, w -> w.us BETWEEN {first} AND {last}) END"


def growth(series: str, start_us: str, end_us: str) -> str:
    """Growth from the last reading at or before start (or the first) to the first at or after end."""
    before = f"coalesce({last_at_or_before(series, start_us)}.value, get({series}, 0).value)"
    return f"{first_at_or_after(series, end_us)}.value - {before}"
