"""The one place where work is spread over threads or processes."""

from __future__ import annotations

from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from morforest._fixed_point import blocks

BLOCKS_PER_JOB = 4  # fewer blocks of rows are not worth a thread


def over_rows(work: Any, rows: int, size: int, n_jobs: int | None) -> None:
    """Call `work` with slices of so many rows, in threads if there are several."""
    parts = [slice(first, min(first + size, rows)) for first in range(0, rows, size)]
    over_parts(work, parts, min(effective_n_jobs(n_jobs), len(parts)))


def over_parts(work: Any, parts: list[slice], jobs: int) -> None:
    """Call `work` with each of the parts, in so many threads."""
    if jobs <= 1:
        for part in parts:
            work(part)
    else:
        Parallel(n_jobs=jobs, require="sharedmem")(delayed(work)(part) for part in parts)


def run_over_rows(work: Any, shape: tuple[int, ...], n_jobs: int | None) -> None:
    """Call `work` with slices of the rows of an array, in threads if there is enough to do."""
    parts = list(blocks(shape))
    over_parts(work, parts, min(effective_n_jobs(n_jobs), len(parts) // BLOCKS_PER_JOB))
