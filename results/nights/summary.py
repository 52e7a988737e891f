"""A run's samples in four numbers a metric: one sort a run, so that 10⁸ rows take seconds. Pure."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

READ = ("metric", "value")
"""The columns of the samples that a summary needs."""
SUMMARY = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("mean", "max", "p50", "p99")),
    ]
)


def summarise(samples: pa.Table) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """(metrics, rows of each, a row for each of mean, max, p50, p99) of a run's samples.

    A quantile q of n values is the one at ⌈q n⌉ of them in order: a value that was seen.
    """
    metric = samples.column("metric").combine_chunks()
    encoded = metric if isinstance(metric, pa.DictionaryArray) else metric.dictionary_encode()
    codes = np.asarray(encoded.indices)
    values = samples.column("value").to_numpy()
    # Codes of 16 bits are put in order by their digits, and each metric's values by themselves: a third of what one
    # sort of both takes.
    order = np.argsort(codes.astype(np.uint16) if len(encoded.dictionary) <= 1 << 16 else codes, kind="stable")
    sorted_codes, ordered = codes[order], values[order]
    starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
    counts = np.diff(np.append(starts, len(ordered)))
    for begin, count in zip(starts, counts, strict=True):
        ordered[begin : begin + count].sort()
    names: list[str] = encoded.dictionary.take(pa.array(sorted_codes[starts])).to_pylist() if len(starts) else []
    if not names:
        return [], counts.astype(np.int64), np.empty((0, 4))
    at: dict[float, Any] = {q: starts + np.maximum(np.ceil(q * counts).astype(np.int64), 1) - 1 for q in (0.5, 0.99)}
    columns = (
        np.add.reduceat(ordered, starts) / counts,
        ordered[starts + counts - 1],
        ordered[at[0.5]],
        ordered[at[0.99]],
    )
    return names, counts.astype(np.int64), np.column_stack(columns)


def summary_table(run_id: str, samples: pa.Table) -> pa.Table:
    """The same as a table of schema SUMMARY."""
    names, counts, numbers = summarise(samples)
    columns = [[run_id] * len(names), names, counts, *numbers.T]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SUMMARY, strict=True)], schema=SUMMARY)
