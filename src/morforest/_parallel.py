"""The one place where work is spread over threads or processes.

Work that writes to shared arrays always runs in threads. Trees of a forest may also be grown in
processes, or by whatever backend the caller has chosen with ``joblib.parallel_config``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from morforest._fixed_point import blocks
from morforest._parameters import check_jobs

Result = TypeVar("Result")

BLOCKS_PER_JOB = 4  # fewer blocks of rows are not worth a thread


def count_jobs(n_jobs: int | None, most: int | None = None) -> int:
    """Return how many workers `n_jobs` means, at least one and at most as many as given."""
    check_jobs(n_jobs)  # once more: it may have been set after the fit
    jobs = int(effective_n_jobs(n_jobs))
    return max(1, jobs if most is None else min(jobs, most))


def over_blocks(work: Callable[[slice], Any], shape: tuple[int, ...], n_jobs: int | None) -> None:
    """Call `work` with slices of the rows of an array, in threads if there is enough to do."""
    parts = list(blocks(shape))
    over_parts(work, parts, count_jobs(n_jobs, len(parts) // BLOCKS_PER_JOB))


def over_rows(work: Callable[[slice], Any], rows: int, size: int, n_jobs: int | None) -> None:
    """Call `work` with slices of `size` rows each, in threads if there are several slices."""
    parts = [slice(first, min(first + size, rows)) for first in range(0, rows, size)]
    over_parts(work, parts, count_jobs(n_jobs, len(parts)))


def over_even_parts(work: Callable[[slice], Any], rows: int, jobs: int) -> None:
    """Call `work` with one slice of the rows per thread; all slices have about the same length."""
    bounds = [rows * job // jobs for job in range(jobs + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    over_parts(work, parts, jobs)


def over_parts(work: Callable[[slice], Any], parts: list[slice], jobs: int) -> None:
    """Call `work` with each of the slices, in so many threads."""
    if jobs <= 1:
        for part in parts:
            work(part)
    else:
        # Workers write to arrays of the caller, so that only threads will do.
        Parallel(n_jobs=jobs, require="sharedmem")(delayed(work)(part) for part in parts)


def map_in_order(
    function: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], jobs: int
) -> Iterator[Result]:
    """Yield the results of calls in order, as they become ready, from threads or processes."""
    if jobs <= 1:
        return (function(*some) for some in arguments)
    calls = (delayed(function)(*some) for some in arguments)
    try:
        run = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
    except ValueError:  # multiprocessing, ray and others return all results at once
        run = Parallel(n_jobs=jobs, prefer="threads")
    return iter(run(calls))
