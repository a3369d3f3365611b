"""The near end of a worker: starts the process and speaks its JSON lines."""

import json
import os
import subprocess
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
# One thread each: CPU seconds then mean work done, not threads spinning while they wait.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerError(RuntimeError):
    """A command failed in the worker; the message holds its traceback."""


class Client:
    """A long-lived worker process; `client("fit", n=5000, ...)` runs one command in it."""

    def __init__(self, library, python, mnist_path):
        self.library = library
        self._process = subprocess.Popen(
            [str(python), str(WORKER), library, str(mnist_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
        try:
            self.versions = self("start")
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
            raise WorkerError(f"{self.library} failed at {request}:\n{answer['error']}")
        return answer["result"]

    def close(self):
        """Let the worker end: it stops when its input does."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
