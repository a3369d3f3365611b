"""Tasks in worker processes with one thread each; a run survives the death of a worker."""

import contextlib
import importlib
import multiprocessing
import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing.connection import wait

from experiments.store import Task

# These are set before a worker starts, so that every library finds them when it is loaded.
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in THREADS}
ONE_THREAD["VECLIB_MAXIMUM_THREADS"] = "1"


def run(
    tasks: Iterable[Task],
    jobs: int,
    finished: Callable[[Task, dict | list[dict], float], None],
    failed: Callable[[Task, str], None],
    package: str = "experiments",
) -> None:
    """Do the tasks in order, `jobs` at a time, each by the module that its study is named after.

    `finished(task, rows, seconds)` and `failed(task, reason)` are called in this process.
    """
    os.environ.update(ONE_THREAD)
    waiting = deque(tasks)
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.task for worker in workers):
            while waiting and len(workers) < jobs:
                workers.append(_Worker(package))
            for worker in workers:
                if waiting and worker.task is None:
                    worker.give(waiting.popleft())
            busy = {worker.connection: worker for worker in workers if worker.task}
            for connection in wait(busy):
                worker = busy[connection]
                task = worker.task
                try:
                    done, result, seconds = connection.recv()
                except (EOFError, ConnectionError):
                    worker.process.join()
                    workers.remove(worker)
                    code = worker.process.exitcode
                    failed(
                        task, f"its process died (exit code {code}); it is tried again next time"
                    )
                    continue
                worker.task = None
                if done:
                    finished(task, result, seconds)
                else:
                    failed(task, result)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    def __init__(self, package):
        # A fresh interpreter, because forked copies of threaded libraries can hang.
        context = multiprocessing.get_context("spawn")
        self.connection, far_end = context.Pipe()
        self.process = context.Process(target=_work, args=(far_end, package), daemon=True)
        self.process.start()
        far_end.close()  # so that the worker's death ends the connection
        self.task = None

    def give(self, task):
        self.task = task
        with contextlib.suppress(BrokenPipeError):  # recv() will tell
            self.connection.send(task)

    def stop(self):
        self.connection.close()
        if self.task is not None:
            self.process.terminate()
        self.process.join()


def _work(connection, package):
    """Do tasks until the other end of the connection is closed."""
    with contextlib.suppress(EOFError, KeyboardInterrupt, ConnectionError):
        while True:
            task = connection.recv()
            start = time.perf_counter()
            try:
                rows = importlib.import_module(f"{package}.{task.study}").run(task)
                answer = (True, rows, time.perf_counter() - start)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                reason = f"{type(error).__name__}: {error}"
                where = f"{os.path.basename(place.filename)}:{place.lineno}"
                answer = (False, f"{reason} ({where})", 0.0)
            connection.send(answer)
