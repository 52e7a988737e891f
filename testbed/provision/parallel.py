"""The same work for many things at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def each(items: Iterable[T], work: Callable[[T], object]) -> None:
    """Do `work` for all items at once; the first failure is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        futures = [pool.submit(work, item) for item in items]
    for future in futures:
        future.result()
