"""Work that is spread over threads and processes: what travels, and what lost workers cost."""

import os
import pickle
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pytest

from morforest import MorfBoostingClassifier, MorfClassifier, Patch
from morforest._parallel import Shared, map_in_order

distributed = pytest.importorskip("distributed")


class Counted:
    """A value that notes in a file each time that a process reads it from a pickle."""

    def __init__(self, path):
        self.path = path

    def __setstate__(self, state):
        self.__dict__.update(state)
        with open(self.path, "a") as file:
            file.write(f"{os.getpid()}\n")


def double(value, argument):
    assert isinstance(value, Counted)
    return 2 * argument


def die_once(path, argument):
    """Kill the process of the first call with argument 3."""
    if argument == 3 and not os.path.exists(path):
        with open(path, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return argument * argument


@pytest.fixture(scope="module")
def cluster():
    options = {"dashboard_address": None, "threads_per_worker": 1, "n_workers": 2}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12, 12)).astype(np.float32)
    return X, (X[:, 3:6, 3:6].sum(axis=(1, 2)) > 0).astype(int)


def forest(n_estimators=24):
    return MorfClassifier(
        Patch(max_size=4), n_estimators=n_estimators, n_jobs=2, oob_score=True, random_state=0
    )


def assert_same(a, b):
    for name in ("next", "threshold", "gain", "distribution_weight"):
        assert getattr(a._forest, name).tobytes() == getattr(b._forest, name).tobytes(), name
    assert a.oob_decision_function_.tobytes() == b.oob_decision_function_.tobytes()


def test_results_come_in_order_for_any_backend():
    expected = [2 * i for i in range(20)]
    shared = Shared(Counted(os.devnull), 10)
    assert list(map_in_order(double, shared, range(20), 1)) == expected
    for backend in ("threading", "loky", "multiprocessing"):
        with joblib.parallel_config(backend=backend):
            assert list(map_in_order(double, shared, range(20), 2)) == expected


def test_what_reaches_a_process_twice_is_one_object():
    first = pickle.dumps(Shared([1, 2], 10))
    a, b = pickle.loads(first), pickle.loads(first)
    assert a is b
    assert a.value == [1, 2]
    assert pickle.loads(pickle.dumps(Shared([1, 2], 10))) is not a


def test_dask_sends_what_calls_share_once_per_worker(cluster, tmp_path):
    path = tmp_path / "read"
    with joblib.parallel_config(backend="dask"):
        found = list(map_in_order(double, Shared(Counted(path), 10), range(40), 2))
    assert found == [2 * i for i in range(40)]
    readers = path.read_text().split()
    assert len(readers) == len(set(readers)) <= 2


def test_dask_grows_the_same_forest(cluster):
    X, y = samples()
    expected = forest().fit(X, y)
    with joblib.parallel_config(backend="dask"):
        assert_same(forest().fit(X, y), expected)


def test_boosting_says_that_it_does_not_use_the_cluster(cluster):
    X, y = samples()
    with (
        joblib.parallel_config(backend="dask"),
        pytest.warns(UserWarning, match="boosting adds one tree after the other"),
    ):
        MorfBoostingClassifier(Patch(max_size=4), max_iter=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MorfBoostingClassifier(Patch(max_size=4), max_iter=2, n_jobs=2).fit(X, y)


@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_calls_of_a_lost_worker_are_made_again(backend, tmp_path, cluster):
    path = str(tmp_path / "died")
    with joblib.parallel_config(backend=backend), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = list(map_in_order(die_once, Shared(path, 10), range(12), 2))
    assert found == [i * i for i in range(12)]
    assert os.path.exists(path)
    told = [str(w.message) for w in caught if "worker was lost" in str(w.message)]
    # Dask may make the calls again by itself.
    assert 0 <= (backend == "loky") <= len(told) <= 1


def test_a_worker_that_dies_during_a_fit_does_not_change_the_forest(cluster):
    X, y = samples()
    expected = forest(200).fit(X, y)
    pid = next(iter(cluster.run(os.getpid).values()))

    def kill():
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with joblib.parallel_config(backend="dask"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = forest(200).fit(X, y)
    killer.join()
    assert_same(found, expected)


def test_errors_of_calls_are_not_taken_for_lost_workers():
    def fail(_, argument):
        raise ValueError(f"no {argument}")

    with pytest.raises(ValueError, match="no "):
        list(map_in_order(fail, Shared(None, 1), range(4), 2))
