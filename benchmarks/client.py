"""Clients of the workers: they start the processes and exchange JSON lines with them."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerError(RuntimeError):
    """A command failed in the worker; the message holds its traceback."""


class Client:
    """A worker process; `client("fit", rows=5000, ...)` runs one command in it."""

    def __init__(self, library, python, threads):
        self.library = library
        # These are set before the libraries start their thread pools. Threads that wait must not
        # spin, because CPU seconds should measure work.
        limits = {**dict.fromkeys(THREAD_LIMITS, str(threads)), "OMP_WAIT_POLICY": "PASSIVE"}
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.worker", library],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits},
        )
        try:
            self.versions = self("versions")
        except BaseException:
            self.close()
            raise

    def __call__(self, command, **arguments):
        request = json.dumps({"command": command, "arguments": arguments})
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise WorkerError(f"The {self.library} worker died during {request}.")
        answer = json.loads(answer)
        if "error" in answer:
            raise WorkerError(f"{self.library} failed at {request}: {answer['error']}")
        return answer["result"]

    def close(self):
        """End the worker at once, even in the middle of a fit."""
        self._process.terminate()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()


class Clients:
    """One worker per library and number of threads, started when it is first needed."""

    def __init__(self, pythons):
        self.pythons = pythons
        self._running = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def get(self, library, threads):
        key = (library, threads)
        if key not in self._running:
            self._running[key] = self.fresh(library, threads)
        return self._running[key]

    def fresh(self, library, threads):
        """Start a separate process, which the caller closes."""
        return Client(library, self.pythons[library], threads)

    def drop(self, client):
        """End a worker that failed; the next request starts another."""
        self._running = {k: c for k, c in self._running.items() if c is not client}
        client.close()

    def close(self, threads=None):
        """End the workers with that number of threads, or all, to free their memory."""
        for key in [k for k in self._running if threads in (None, k[1])]:
            self._running.pop(key).close()
