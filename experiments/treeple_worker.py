"""Fit treeple's forest of patches in its own environment; the study `peer_forest` starts this.

A line of JSON on standard input names a file with samples, and the settings. The answer is a line
as well. Nothing but NumPy and treeple is imported, since the environment has nothing else.
"""

import json
import sys
import time

import numpy as np


def fit_and_test(file, settings):
    """Return the test error and CPU-seconds."""
    from treeple import PatchObliqueRandomForestClassifier

    with np.load(file) as given:
        X, y, X_test, y_test = (given[name] for name in ("X", "y", "X_test", "y_test"))
    model = PatchObliqueRandomForestClassifier(**settings)
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    error = float(np.mean(model.predict(X_test) != y_test))
    done = time.process_time()
    seconds = {"train_seconds": fitted - start, "test_seconds": done - fitted}
    return {"error": error, **{name: round(value, 4) for name, value in seconds.items()}}


if __name__ == "__main__":
    print(json.dumps(fit_and_test(**json.loads(sys.stdin.readline()))))
