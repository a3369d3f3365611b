"""One case of benchmarks/cluster.py, in a fresh process; prints a line of JSON.

Runs in the environment of the library that it measures, and imports no other.
"""

import argparse
import itertools
import json
import multiprocessing
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROWS_OF_BLOCK = 100_000
TEST_ROWS = 50_000
SETTLED = 2  # seconds for workers to start their own threads


def make_block(first, rows, features):
    """Return rows of normal numbers and their classes; the same for the same numbers of rows."""
    random = np.random.default_rng((0, first))
    X = random.standard_normal((rows, features), dtype=np.float32)
    score = X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3] - X[:, 4] + 0.5 * X[:, 5] * X[:, 6]
    y = score + random.standard_normal(rows, dtype=np.float32) > 0
    return X, y.astype(np.int64)


def bounds(rows):
    """Return the first row of each block, and the number of rows behind the last."""
    return [*range(0, rows, ROWS_OF_BLOCK), rows]


def dask_arrays(rows, features):
    """Return arrays that are made block by block where they are needed, as if read from a disk."""
    import dask
    import dask.array as da

    edges = bounds(rows)
    X, y = [], []
    for first, end in itertools.pairwise(edges):
        pair = dask.delayed(make_block, nout=2)(first, end - first, features)
        X.append(da.from_delayed(pair[0], (end - first, features), np.float32))
        y.append(da.from_delayed(pair[1], (end - first,), np.int64))
    return da.concatenate(X), da.concatenate(y)


# --- what is measured ----------------------------------------------------------------------------


def status(field):
    """Return a field of /proc/self/status in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def reset_peak():
    """Let the kernel's high-water mark of memory start again."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def sent():
    """Return the bytes that went through the loopback device, of all processes of the machine."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[8])
    raise KeyError("lo")


class Meter:
    """Seconds, memory and bytes of the workers of a cluster from entering to leaving."""

    def __init__(self, client):
        self.client = client

    def __enter__(self):
        self.client.run(reset_peak)
        self.cpu = self._cpu()
        self.sent, self.began = sent(), time.perf_counter()
        return self

    def __exit__(self, *_):
        self.wall_s = time.perf_counter() - self.began
        self.sent_mib = (sent() - self.sent) / 2**20
        self.cpu_s = self._cpu() - self.cpu
        self.peak_mib = max(self.client.run(status, "VmHWM").values())

    def _cpu(self):
        return sum(self.client.run(time.process_time).values()) + time.process_time()


# --- the libraries -------------------------------------------------------------------------------


def morforest_on_cluster(setting, client):
    import morforest.dask
    from morforest import MorfClassifier, SparseOblique

    X, y = dask_arrays(setting["rows"], setting["features"])
    forest = MorfClassifier(SparseOblique(), n_estimators=setting["trees"], random_state=0)
    with Meter(client) as meter:
        morforest.dask.fit(forest, X, y)
    return meter, forest.predict


def xgboost_on_cluster(setting, client):
    import xgboost.dask

    X, y = dask_arrays(setting["rows"], setting["features"])
    model = xgboost.dask.DaskXGBClassifier(
        n_estimators=setting["trees"], tree_method="hist", n_jobs=1
    )
    model.client = client
    with Meter(client) as meter:
        model.fit(X, y)
    booster = model.get_booster()
    return meter, lambda X: booster.inplace_predict(X) > 0.5


def on_cluster(setting):
    """Fit on worker processes with one thread each."""
    from distributed import Client, LocalCluster

    options = {
        "n_workers": setting["workers"],
        "threads_per_worker": 1,
        "memory_limit": setting["limit_mib"] * 2**20,
        "dashboard_address": None,
    }
    run = {"morforest": morforest_on_cluster, "xgboost": xgboost_on_cluster}[setting["library"]]
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        time.sleep(SETTLED)
        meter, predict = run(setting, client)
    return meter, predict


def in_one_process(setting):
    """Fit to an iterable of blocks in this process."""
    from morforest import MorfClassifier, SparseOblique, fit_blocks

    edges = bounds(setting["rows"])

    def read():
        for first, end in itertools.pairwise(edges):
            yield make_block(first, end - first, setting["features"])

    forest = MorfClassifier(SparseOblique(), n_estimators=setting["trees"], random_state=0)
    reset_peak()
    meter = argparse.Namespace(sent_mib=0.0)
    cpu, began = time.process_time(), time.perf_counter()
    fit_blocks(forest, read, memory=setting["limit_mib"] * 2**20 // 4)
    meter.wall_s, meter.cpu_s = time.perf_counter() - began, time.process_time() - cpu
    meter.peak_mib = status("VmHWM")
    return meter, forest.predict


def constants(setting):
    """Measure in one thread what the cost of larger data is made of."""
    from morforest import MorfClassifier, SparseOblique
    from morforest._block_data import read_block, summarise, take

    rows, features = setting["rows"], setting["features"]
    X, y = make_block(0, rows, features)
    block = read_block(0, X, y, (features,))
    few = np.arange(0, rows, 1000, dtype=np.uint64)
    began = time.process_time()
    summarise(block, few, True)
    summary_s = time.process_time() - began
    tenth = np.arange(0, rows, 10, dtype=np.uint64)
    began = time.process_time()
    take(block, tenth)
    take_s = (time.process_time() - began) / len(tenth)
    forest = MorfClassifier(SparseOblique(), n_estimators=1, random_state=0, n_jobs=1)
    began = time.process_time()
    forest.fit(X, y)
    return {
        "summary_ns_per_value": summary_s / X.size * 1e9,
        "take_us_per_row": take_s * 1e6,
        "grow_us_per_row_and_level": (time.process_time() - began) / rows / np.log2(rows) * 1e6,
    }


def measure(setting):
    if setting["kind"] == "constants":
        return constants(setting)
    meter, predict = {"cluster": on_cluster, "process": in_one_process}[setting["kind"]](setting)
    X, y = make_block(10**9, TEST_ROWS, setting["features"])
    return {
        "wall_s": meter.wall_s,
        "cpu_s": meter.cpu_s,
        "peak_mib": meter.peak_mib,
        "sent_mib": meter.sent_mib,
        "accuracy": float((predict(X) == y).mean()),
    }


def main():
    setting = json.loads(sys.argv[1])
    found = {name: round(value, 6) for name, value in measure(setting).items()}
    versions = {
        "library_version": version(setting["library"]),
        "dask": version("dask"),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps({**versions, **found}), flush=True)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    main()
