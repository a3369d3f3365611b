"""One library under test, alone in its process.

Reads a command a line on standard input and answers a line on standard output, both JSON. All
libraries pass through this same file, so all are timed by the same lines: a call to `fit`,
`predict` or `predict_proba` and nothing around it. The images lie ready in the form the library
likes best (the peers would otherwise copy them to float32), and one small forest has been grown
before the first clock starts, so that no library pays for its imports.

    python worker.py morforest mnist.npz
"""

import gc
import importlib.metadata
import json
import pickle
import platform
import sys
import time
import traceback

import mnist
import numpy as np

SMALLEST_PATCH = (2, 2)
CANDIDATES = 28  # a node: the square root of 784 pixels


def morforest(trees, largest_patch, seed):
    from morforest import MorfClassifier, Patch

    return MorfClassifier(
        Patch(min_size=SMALLEST_PATCH, max_size=tuple(largest_patch)),
        n_estimators=trees,
        max_features=CANDIDATES,
        n_jobs=1,
        random_state=seed,
    )


def scikit_learn(trees, largest_patch, seed):
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, max_features=CANDIDATES, n_jobs=1, random_state=seed)


def treeple(trees, largest_patch, seed):
    from treeple import PatchObliqueRandomForestClassifier

    return PatchObliqueRandomForestClassifier(
        trees,
        data_dims=(28, 28),
        min_patch_dims=SMALLEST_PATCH,
        max_patch_dims=tuple(largest_patch),
        max_features=CANDIDATES,
        n_jobs=1,
        random_state=seed,
    )


def as_images(X):
    return np.ascontiguousarray(X)


def as_flat_floats(X):
    return np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float32)


LIBRARIES = {
    "morforest": (morforest, as_images),
    "scikit-learn": (scikit_learn, as_flat_floats),
    "treeple": (treeple, as_flat_floats),
}


def timed(call, *arguments):
    """The call's result, and the CPU and wall-clock seconds it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call(*arguments)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return result, {"cpu": cpu, "wall": wall}


class ByteCount:
    """A file that only measures what is written to it."""

    def __init__(self):
        self.bytes = 0

    def write(self, data):
        self.bytes += memoryview(data).nbytes


class Worker:
    """The commands. Each returns what is sent back."""

    def __init__(self, library, path):
        self.library = library
        self.build, prepare = LIBRARIES[library]
        X_train, y_train, X_test, y_test = mnist.load(path)
        self.X_train, self.X_test = prepare(X_train), prepare(X_test)
        self.y_train, self.y_test = y_train.astype(np.int64), y_test.astype(np.int64)
        self.model = None
        self.fit(n=200, trees=2, patch=SMALLEST_PATCH, seed=0)

    def versions(self):
        return {
            "python": platform.python_version(),
            "library_version": importlib.metadata.version(self.library),
            "scikit_learn": importlib.metadata.version("scikit-learn"),
            "numpy": np.__version__,
        }

    def fit(self, n, trees, patch, seed):
        """Grow a forest on the first n training images and keep it."""
        self.model = None
        gc.collect()
        model = self.build(trees, patch, seed)
        self.model, seconds = timed(model.fit, self.X_train[:n], self.y_train[:n])
        return seconds

    def score(self):
        labels, seconds = timed(self.model.predict, self.X_test)
        return {"accuracy": float(np.mean(labels == self.y_test)), **seconds}

    def predict(self, rows, calls):
        """The seconds of each of so many calls, after one that is not counted."""
        X = self.X_test[:rows]
        self.model.predict_proba(X)
        return [timed(self.model.predict_proba, X)[1] for _ in range(calls)]

    def pickle_size(self):
        count = ByteCount()
        pickle.dump(self.model, count, protocol=5)
        return count.bytes


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    worker = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["command"] == "start":
                worker = Worker(*sys.argv[1:])
                result = worker.versions()
            else:
                result = getattr(worker, request["command"])(**request["arguments"])
            answer = {"result": result}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
