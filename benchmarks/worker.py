"""One library under test, alone in its process.

The worker reads one command per line on standard input and writes one answer per line on standard
output, both in JSON. All libraries run this same file, so the same lines time all of them: a call
to `fit` or `predict_proba` and nothing around it. The data is in the form that the library prefers,
and one small model of the same kind has been fitted before, so that no library pays for its
imports. CPU seconds are those of the process, user and system, of all threads.

It runs in the environments of other libraries, where morforest is not installed: nothing that it
imports may import morforest.

    python -m benchmarks.worker LIBRARY
"""

import ctypes
import gc
import importlib.metadata
import json
import logging
import pathlib
import platform
import signal
import statistics
import sys
import time
import traceback
import warnings

import numpy as np

from benchmarks import models
from measuring import arrays

WARM_UP = {"trees": 2}
WARM_UP_ROWS = 300


def timed(call, *arguments):
    """Return the CPU and wall-clock seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call(*arguments)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu": cpu, "wall": wall}


def memory(field):
    """Return a field of /proc/self/status in bytes."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise KeyError(field)


def peak_begins():
    """Let the peak of resident memory start anew, and return what is held; None if impossible."""
    try:
        # Free memory that the process keeps would hide the first part of what a call needs.
        ctypes.CDLL(None).malloc_trim(0)
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except (AttributeError, OSError):
        return None
    return memory("VmRSS")


class Worker:
    """The commands; what a method returns is sent back."""

    def __init__(self, library):
        self.library = library
        self.held = {}  # key of a fit -> fitted model
        self.warm = set()
        self._loaded = self._ready = (None, None)

    def versions(self):
        return {
            "library": self.library,
            "library_version": importlib.metadata.version(self.library),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit_learn": importlib.metadata.version("scikit-learn"),
        }

    def fit(self, model, path, rows, work, threads, seed, hold=False):
        """Fit a model to the first rows, and score it on all test rows."""
        train = self._train(model, path, rows)
        self._warm_up(model, path, work, threads)
        grown = models.MODELS[model](work, threads, seed)
        gc.collect()
        seconds = timed(grown.fit, train)
        if hold:
            self.held[json.dumps([model, path, rows, work, seed])] = grown
        return {**seconds, "score": self._score(grown, path)}

    def fit_unless_held(self, model, path, rows, work, threads, seed):
        """Return the key of a model whose fit need not be timed; fit it unless it is held."""
        key = json.dumps([model, path, rows, work, seed])
        if key not in self.held:
            self.fit(model, path, rows, work, threads, seed, hold=True)
        return key

    def predict(self, key, path, batch, calls):
        """Return the median seconds of several calls, after one that is not counted."""
        grown = self.held[key]
        rows = self._load(path)[2][:batch]
        ready = grown.ready_to_predict(rows)
        gc.collect()
        grown.predict_proba(ready)
        seconds = [timed(grown.predict_proba, ready) for _ in range(calls)]
        return {clock: statistics.median(s[clock] for s in seconds) for clock in ("cpu", "wall")}

    def score(self, key, path):
        return self._score(self.held[key], path)

    def size(self, key):
        return self.held[key].size()

    def answer(self, key, path, question, levels=()):
        """Return the seconds of a call about all test rows, its peak memory, and a score.

        The score of quantiles is the mean pinball loss, that of others the one of the model.
        """
        grown = self.held[key]
        _, _, X, y = self._load(path)
        ready = grown.ready_to_predict(X)
        arguments = (ready, levels) if levels else (ready,)
        gc.collect()
        before = peak_begins()
        found = []
        seconds = timed(lambda: found.append(getattr(grown, question)(*arguments)))
        peak = "" if before is None else memory("VmHWM") - before
        score = self._score(grown, path)
        if levels:
            error = y[:, np.newaxis] - found[0]
            score = float(
                np.mean(np.maximum(np.array(levels) * error, (np.array(levels) - 1) * error))
            )
        return {**seconds, "bytes": peak, "score": score}

    def peak_memory(self, model, path, rows, work, threads, seed):
        """Return the peak of resident memory during a fit, above what was held before it."""
        train = self._train(model, path, rows)
        self._warm_up(model, path, work, threads)
        self._loaded = (None, None)  # only the library's own form of the data stays
        gc.collect()
        grown = models.MODELS[model](work, threads, seed)
        before = peak_begins()
        if before is None:
            return {"impossible": "it takes Linux with glibc and a peak to reset"}
        grown.fit(train)
        peak = memory("VmHWM") - before
        return {"bytes": peak, "score": self._score(grown, path)}

    def _load(self, path):
        if self._loaded[0] != path:
            self._loaded = self._ready = (None, None)  # frees before it loads
            self._loaded = (path, arrays.load(path))
        return self._loaded[1]

    def _train(self, model, path, rows):
        kind = models.MODELS[model]
        key = (path, rows, kind.ready)
        if self._ready[0] != key:
            X, y, *_ = self._load(path)
            self._ready = (None, None)
            if rows > len(X):  # repeat the rows
                X, y = np.resize(X, (rows, *X.shape[1:])), np.resize(y, rows)
            self._ready = (key, kind.ready(X[:rows], y[:rows]))
        return self._ready[1]

    def _warm_up(self, model, path, work, threads):
        if (model, work["task"]) not in self.warm:
            kind = models.MODELS[model]
            X, y, *_ = self._load(path)
            grown = kind({**work, **WARM_UP}, threads, 0)
            grown.fit(kind.ready(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS]))
            self.warm.add((model, work["task"]))

    def _score(self, grown, path):
        """Return the accuracy, or the coefficient of determination."""
        _, _, X, y = self._load(path)
        found = grown.predict(grown.ready_to_predict(X))
        if grown.work["task"] == "regression":
            return float(1 - np.mean((found - y) ** 2) / np.var(y))
        return float(np.mean(found == y))


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # prints of a library must not mix with answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client handles Ctrl-C and ends us
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = getattr(worker, request["command"])(**request["arguments"])
            answer = {"result": result}
        except Exception as error:
            answer = {"error": "".join(traceback.format_exception_only(error)).strip()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
