"""The one place where work is spread over threads or processes.

Work that writes to shared arrays always runs in threads. Trees of a forest may also be grown in
processes, or by whatever backend the caller has chosen with ``joblib.parallel_config``.
"""

from __future__ import annotations

import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from morforest._fixed_point import blocks
from morforest._parameters import check_jobs

Value = TypeVar("Value")
Argument = TypeVar("Argument")
Result = TypeVar("Result")

BLOCKS_PER_JOB = 4  # fewer blocks of rows are not worth a thread
SMALLEST_SHARED = 1 << 20  # bytes; larger than what dask sends along with each call
TRIES = 3  # of calls whose workers are lost, before this process makes them
# The errors of loky, dask and ray, which are named here because none of these need be installed.
LOST_WORKER = {
    "BrokenExecutor",
    "CancelledError",
    "FutureCancelledError",
    "KilledWorker",
    "LostDataError",
    "RayActorError",
    "WorkerCrashedError",
}
OWN_BACKENDS = {"ThreadingBackend", "SequentialBackend", "LokyBackend", "MultiprocessingBackend"}


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


class Shared(Generic[Value]):
    """What all calls of one task need, which travels to each process once.

    A backend may pickle it for every call. The copies that reach one process are then the same
    object, so that what the first call makes of it serves all others.
    """

    def __init__(self, value: Value, size: int):
        self.value = value
        self.size = size
        self.token = uuid4().hex

    def __sizeof__(self) -> int:
        # Dask sends arguments once per worker if they say that they are large.
        return max(self.size, SMALLEST_SHARED)

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive, (self.token, self.value, self.size)


_received: WeakValueDictionary[str, Shared[Any]] = WeakValueDictionary()
_latest: list[Shared[Any]] = []  # keeps what came last, for calls that are still to come
_receiving = threading.Lock()


def _receive(token: str, value: Value, size: int) -> Shared[Value]:
    """Return what this process has received under the same token, or else the new value."""
    with _receiving:
        found = _received.get(token)
        if found is None:
            found = Shared(value, size)
            found.token = token
            _received[token] = found
        if "distributed" not in sys.modules:  # whose workers hold the object themselves
            _latest[:] = [found]
        return found


def map_in_order(
    function: Callable[[Value, Argument], Result],
    shared: Shared[Value],
    arguments: Sequence[Argument],
    jobs: int,
) -> Iterator[Result]:
    """Yield ``function(shared.value, argument)`` in order, as results become ready.

    Calls run in threads, or wherever the caller has asked joblib to run them. Where a worker is
    lost, the calls that have not returned are repeated, at last in this process.
    """
    done = 0
    for _ in range(TRIES if jobs > 1 else 0):
        try:
            for result in _run(function, shared, arguments[done:], jobs):
                done += 1
                yield result
            return
        except Exception as error:
            if not _lost_worker(error):
                raise
            warnings.warn(
                f"A worker was lost ({type(error).__name__}): its work is done again.",
                RuntimeWarning,
                2,
            )
    for argument in arguments[done:]:
        yield function(shared.value, argument)


def _call(
    function: Callable[[Value, Argument], Result], shared: Shared[Value], argument: Argument
) -> Result:
    return function(shared.value, argument)


def _run(
    function: Callable[[Value, Argument], Result],
    shared: Shared[Value],
    arguments: Sequence[Argument],
    jobs: int,
) -> Iterator[Result]:
    calls = (delayed(_call)(function, shared, argument) for argument in arguments)
    try:
        run = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
    except ValueError:  # multiprocessing, ray and others return all results at once
        run = Parallel(n_jobs=jobs, prefer="threads")
    return iter(run(calls))


def _lost_worker(error: BaseException) -> bool:
    """Say whether a worker died or was cut off, by the names that backends give such errors."""
    return any(kind.__name__ in LOST_WORKER for kind in type(error).__mro__)


def runs_elsewhere() -> str | None:
    """Return the name of the backend that was asked for if its workers may be on other machines."""
    backend, _ = get_active_backend()
    name = type(backend).__name__
    return None if name in OWN_BACKENDS else name
