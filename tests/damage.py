"""Damage the pickled states of fitted models, load them, and use what loads.

    python tests/damage.py --states 100000 --seed 0

A damaged file must be refused when it is loaded, by a ValueError that begins with "damaged", or be
a model that works: every question can be asked of it, though the answers may be wrong. If all that
was learned is gone, the model is one that is not fitted, and says so. Any other exception is a
failure, and so are a crash, more than a few gigabytes, or more than a minute.

States are numbered; the number and the seed decide what is damaged, so that a failure can be seen
again with ``--first NUMBER --states 1``. They run in child processes, so that a crash is counted
with its number and does not end the run. The exit code is nonzero if anything failed.

Under sanitizers, build the core with them and preload their run-time library, and that of C++ so
that exceptions are found::

    CXXFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -g" pip install .
    LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" \
        ASAN_OPTIONS=detect_leaks=0 python tests/damage.py --states 100000 --no-memory-limit \
        --report benchmarks/results/damage.md

The report says which sanitizers the core was built with, as its file tells.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import io
import pickle
import platform
import shlex
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn.exceptions import NotFittedError

import morforest
from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    Atoms,
    Axis,
    Difference,
    Gradient,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Pair,
    Patch,
    Raw,
    SharedAtoms,
    SparseOblique,
    Square,
    Subset,
    Variance,
)

ROOT = Path(__file__).resolve().parent.parent
ROWS, SHAPE = 40, (4, 6)
WEIGHTS = np.arange(ROWS) % 3  # of samples, some of them zero
SECONDS = 60  # that one state may take
MEMORY = 4 << 30  # bytes that a child may address
SLICE = 2000  # states of a child process
OUTCOMES = ("refused", "unfitted", "works", "exception", "crash")
OPERATIONS = ["max", "min", "mean", "proportion"]
QUESTIONS = (  # about samples
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "staged_predict",
    "staged_predict_proba",
    "transform",
    "apply",
    "decision_path",
    "attributions",
    "weights",
    "nearest",
    "proximity",
    "predict_quantiles",
    "predict_interval",
    "predict_set",
    "predict_std",
)
CALIBRATED = ("predict_interval", "predict_quantiles", "predict_set")  # not of every boosted model
ARGUMENTS = {  # beside the samples
    "nearest": (1,),
    "predict_quantiles": ([0.1, 0.5, 0.9],),
    "predict_interval": (0.8,),
    "predict_set": (0.8,),
}
# What is the fault of the data, or of the parameters, for all that the file says.
ANSWERS = ("X has values so large", "fit with keep_samples=True")


# --- models ----------------------------------------------------------------------------------


def samples(whole=True):
    X = np.random.default_rng(3).integers(-30, 30, (ROWS, *SHAPE))
    return X if whole else X / 7.0


def with_holes(X):
    """The same without some values, and without all of one sample."""
    X = np.where(np.random.default_rng(4).random(X.shape) < 0.3, np.nan, X)
    X[3] = np.nan
    return X


def forest(dictionary, **parameters):
    return MorfClassifier(dictionary, n_estimators=3, random_state=0, **parameters)


def regressor(dictionary, **parameters):
    return MorfRegressor(dictionary, n_estimators=3, random_state=0, **parameters)


def fitted(model, kind="classes", whole=True, weight=None, gaps=False):
    X = samples(whole)
    value = X[:, 1, 2:4].sum(axis=1) + X[:, 2, 1]
    labels = np.digitize(value, np.quantile(value, [0.3, 0.6]))
    y = {
        "classes": labels,
        "words": np.array(["one", "three", "two"])[labels],
        "two": (labels > 0),
        "numbers": value.astype(float),
        "counts": np.abs(value) % 5,
        "outputs": np.stack([labels, value % 2, value > 0], axis=1),
        "several numbers": np.stack([value / 7.0, value % 5 * 1e-6], axis=1),
    }[kind]
    if gaps:
        X = with_holes(X)
    if kind == "words":  # with names of the features, too
        import pandas as pd

        X = pd.DataFrame(X.reshape(ROWS, -1), columns=[f"x{i}" for i in range(X[0].size)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y) if weight is None else model.fit(X, y, weight)


MODELS = {
    "patches": lambda: fitted(forest(Patch(1, 3))),
    "patches of fractions": lambda: fitted(forest(Patch(1, 3)), whole=False),
    "features, named": lambda: fitted(forest(Axis(), min_samples_leaf=3), "words"),
    "sparse sums, best first": lambda: fitted(forest(SparseOblique(), max_leaf_nodes=8), "two"),
    "fractional weights": lambda: fitted(forest(Atoms(np.eye(24)[:20] - 0.3 * np.eye(24)[4:]))),
    "gradients": lambda: fitted(forest(Patch(1, 3, views=[Gradient(4), Magnitude()]))),
    "pairs across views": lambda: fitted(
        forest(Pair(1, 2, views=[Square(), Raw(), Difference()])), whole=False
    ),
    "wrapped and haar": lambda: fitted(forest(Mixture([Patch(2, 3, boundary="wrap"), Haar(1, 2)]))),
    "kernels": lambda: fitted(regressor(Kernel("sign")), "numbers"),
    "pooled": lambda: fitted(forest(Haar(1, 2, pool=OPERATIONS))),
    "pooled, wrapped": lambda: fitted(
        regressor(Patch(1, 3, pool=OPERATIONS, boundary="wrap", views=[Raw(), Difference()])),
        "numbers",
        whole=False,
    ),
    "competing": lambda: fitted(forest(Kernel("sign", 2, 2, pool="win", rivals=2))),
    "variance": lambda: fitted(forest(Variance(1, 3, views=[Raw(), Difference()])), whole=False),
    "mixture": lambda: fitted(
        forest(Mixture([Patch(1, 3, pool="max"), Variance(2, 3), Axis(), Pair(1, 2)]))
    ),
    "median leaves": lambda: fitted(
        regressor(Subset(Patch(1, 3), 30), criterion="absolute_error"), "numbers"
    ),
    "shared": lambda: fitted(forest(SharedAtoms(Patch(1, 3), 30))),
    "shared, pooled, combined": lambda: fitted(
        forest(SharedAtoms(Patch(1, 3, pool=OPERATIONS), 30, combine="ridge")), whole=False
    ),
    "shared regression": lambda: fitted(
        regressor(SharedAtoms(Mixture([Variance(2, 3), Haar(1, 2)]), 30)), "numbers"
    ),
    "kept samples": lambda: fitted(
        forest(Patch(1, 3), keep_samples=True, class_weight="balanced", min_samples_leaf=2)
    ),
    "kept samples of numbers": lambda: fitted(
        regressor(Patch(1, 3), keep_samples=True, max_depth=3), "numbers", weight=WEIGHTS
    ),
    "gaps": lambda: fitted(forest(Mixture([Patch(1, 3), Axis()], [1, 1])), gaps=True),
    "gaps, pooled": lambda: fitted(forest(Haar(1, 2, pool=OPERATIONS)), whole=False, gaps=True),
    "gaps, boosting": lambda: fitted(
        MorfBoostingClassifier(Axis(), max_iter=3, random_state=0), gaps=True
    ),
    "tree": lambda: fitted(MorfTreeClassifier(Patch(1, 3), random_state=0), "words"),
    "regression tree": lambda: fitted(MorfTreeRegressor(Patch(1, 3), random_state=0), "numbers"),
    "outputs": lambda: fitted(
        forest(Patch(1, 3), keep_samples=True, class_weight="balanced"), "outputs"
    ),
    "outputs of numbers": lambda: fitted(
        regressor(Patch(1, 3), keep_samples=True, max_depth=3), "several numbers", weight=WEIGHTS
    ),
    "boosting": lambda: fitted(MorfBoostingClassifier(Patch(1, 3), max_iter=3, random_state=0)),
    "boosting of two classes": lambda: fitted(
        MorfBoostingClassifier(Haar(1, 2, pool=OPERATIONS), max_iter=3, random_state=0), "two"
    ),
    "boosting of numbers": lambda: fitted(
        MorfBoostingRegressor(Subset(Patch(1, 3), 20), max_iter=3, random_state=0),
        "numbers",
        whole=False,
    ),
    "boosting of counts": lambda: fitted(
        MorfBoostingRegressor(
            SharedAtoms(Patch(1, 3), 20), max_iter=3, random_state=0, loss="poisson"
        ),
        "counts",
    ),
    "boosting with intervals": lambda: fitted(
        MorfBoostingRegressor(Patch(1, 3), max_iter=3, calibration_folds=2, random_state=0),
        "numbers",
    ),
    "boosting with sets": lambda: fitted(
        MorfBoostingClassifier(Axis(), max_iter=3, calibration_folds=2, random_state=0)
    ),
    "boosting of a quantile": lambda: fitted(
        MorfBoostingRegressor(
            Axis(), loss="quantile", max_iter=3, calibration_folds=2, random_state=0
        ),
        "numbers",
    ),
    "atom features": lambda: fitted(AtomFeatures(Patch(1, 3), 30, random_state=0)),
    "atom features, pooled": lambda: fitted(
        AtomFeatures(Mixture([Haar(1, 2, pool=OPERATIONS), Variance(2, 3)]), 30, random_state=0),
        whole=False,
    ),
    "atom features, competing": lambda: fitted(
        AtomFeatures(Kernel("sign", 2, 2, pool="lose", rivals=2), 30, random_state=0)
    ),
    "ridge": lambda: fitted(AtomRidgeClassifier(Patch(1, 3), 30, random_state=0)),
    "ridge of numbers": lambda: fitted(
        AtomRidgeRegressor(Mixture([Variance(2, 3), Patch(1, 3)]), 30, random_state=0), "numbers"
    ),
    "ridge of two classes": lambda: fitted(
        AtomRidgeClassifier(Haar(1, 2, pool=OPERATIONS), 30, random_state=0), "two", whole=False
    ),
}


@functools.cache
def model(name):
    return MODELS[name]()


# --- damage ----------------------------------------------------------------------------------


class Damager(pickle.Pickler):
    """Pickles a model, and damages the objects of some numbers on the way.

    Without numbers it lists the objects: arrays, and others with a state of their own.
    """

    def __init__(self, file, random=None, targets=(), donors=()):
        super().__init__(file, protocol=4)
        self.random, self.targets, self.donors = random, targets, donors
        self.arrays, self.others, self.found = [], [], 0

    def reducer_override(self, obj):
        array = isinstance(obj, np.ndarray)
        # How other libraries load their own objects is their matter.
        ours = type(obj).__module__.startswith("morforest") and not isinstance(obj, type)
        if not array and not ours:
            return NotImplemented
        number = self.found
        self.found += 1
        (self.arrays if array else self.others).append((number, obj))
        if number not in self.targets:
            return NotImplemented
        if array:
            return damage_array(obj, self.random, self.donors).__reduce_ex__(4)
        make, arguments, state, *rest = obj.__reduce_ex__(4)
        found = damage_value(state, self.random, self.donors)
        # Without a state nothing would be called that could refuse it.
        return (make, arguments, 0 if found is None else found, *rest)


NUMBERS = [-1, 0, 1, 2, 3, 5, *(2**k + d for k in (7, 8, 15, 31, 32, 62) for d in (-1, 0))]
REALS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1e-300, 5e-324, 1e300, -1e300, 2.0**62, 1e20]
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
ODD_DTYPES = ["?", "c16", "O", "U3", "S3", "M8[s]", ">i4", ">f8"]
THINGS = [
    None,
    True,
    0,
    -1,
    3,
    10**30,
    0.5,
    np.nan,
    "",
    "none",
    (),
    [],
    {},
    np.zeros(3),
    np.int8(1),
]


def choice(random, values):
    return values[random.integers(len(values))]


def damage_array(array, random, donors):
    """Return another array."""
    array = np.array(array)
    if array.dtype == object and array.size:
        array.flat[random.integers(array.size)] = choice(random, THINGS[:9])
        return array
    kind = random.integers(10)
    if kind < 3 and array.nbytes:  # a bit
        raw = array.reshape(-1).view(np.uint8)
        raw[random.integers(raw.size)] ^= np.uint8(1 << random.integers(8))
        return array
    if kind < 5 and array.size and array.dtype.kind in "iuf":  # an element, or all
        values = REALS if array.dtype.kind == "f" else NUMBERS
        wide = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        wide.flat[random.integers(array.size) if random.random() < 0.8 else slice(None)] = choice(
            random, values
        )
        return wide
    if kind < 6:
        dtype = choice(random, DTYPES if random.random() < 0.7 else ODD_DTYPES)
        with np.errstate(all="ignore"):
            try:
                return array.astype(dtype)
            except (TypeError, ValueError):
                return array[:0]
    if kind < 8:
        shapes = [
            lambda: array[:-1] if array.ndim else array.reshape(1),
            lambda: np.concatenate([array, array[-1:]]) if array.ndim else array,
            lambda: array[:0] if array.ndim else array,
            lambda: array[np.newaxis],
            lambda: array[..., np.newaxis],
            lambda: array.T.copy() if array.ndim > 1 else array[::-1].copy(),
            lambda: array.reshape(-1)[:1].reshape(()) if array.size else array,
            lambda: np.repeat(array, 2, axis=0) if array.ndim else array,
        ]
        return choice(random, shapes)()
    if kind < 9 and array.ndim and len(array):
        return random.permutation(array)
    return np.array(choice(random, donors)) if len(donors) else array


def damage_value(value, random, donors):
    """Return another value for a part of an object's state, as deep in it as chance has it."""
    if random.random() < 0.04:
        return choice(random, THINGS)
    if isinstance(value, np.ndarray):
        return damage_array(value, random, donors)
    if isinstance(value, dict) and value:
        found = dict(value)
        key = choice(random, list(found))
        way = random.random()
        if way < 0.1:
            del found[key]
        elif way < 0.2:
            other = choice(random, list(found))
            found[key], found[other] = found[other], found[key]
        else:
            found[key] = damage_value(found[key], random, donors)
        return found
    if isinstance(value, (tuple, list)):
        found = list(value)
        way = random.random()
        if way < 0.1 or not found:
            found.append(choice(random, THINGS))
        elif way < 0.2:
            del found[random.integers(len(found))]
        elif way < 0.3:
            found.reverse()
        else:
            place = random.integers(len(found))
            found[place] = damage_value(found[place], random, donors)
        return type(value)(found) if type(value) in (tuple, list) else tuple(found)
    if isinstance(value, (bool, np.bool_)):
        return choice(random, [not value, int(value), None])
    if isinstance(value, (int, np.integer)):
        numbers = [int(value) ^ (1 << int(random.integers(40))), -int(value), int(value) + 1]
        return choice(random, [*numbers, int(value) - 1, float(value), 10**30, *NUMBERS])
    if isinstance(value, float):
        bits = np.array([value]).view(np.int64) ^ (1 << int(random.integers(63)))
        return choice(random, [float(bits.view(np.float64)[0]), *REALS, 1, None])
    if isinstance(value, str):
        return choice(random, ["", value[::-1], value + "_", "raw", "square", None, 3])
    return choice(random, THINGS)


def damaged_pickle(name, seed, number):
    """Return the bytes of a damaged model."""
    random = np.random.default_rng([seed, number])
    sites = Damager(io.BytesIO())
    sites.dump(model(name))
    donors = [array for _, array in sites.arrays]
    targets = set()
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        kind = sites.arrays if random.random() < 0.6 and sites.arrays else sites.others
        targets.add(kind[random.integers(len(kind))][0])
    file = io.BytesIO()
    Damager(file, random, targets, donors).dump(model(name))
    return file.getvalue()


# --- use -------------------------------------------------------------------------------------


def use(loaded):
    """Ask everything that can be asked of a fitted model."""
    X = samples().reshape(ROWS, -1)
    for rows in (X, X.astype(np.float64) / 3.0, with_holes(X)):
        if hasattr(loaded, "feature_names_in_"):
            import pandas as pd

            # Names of the same kind make a good model, whatever they were before.
            rows = pd.DataFrame(rows, columns=loaded.feature_names_in_)
        for question in QUESTIONS:
            uncalibrated = getattr(loaded, "_calibration", True) is None
            if question in CALIBRATED and uncalibrated:
                continue
            if hasattr(loaded, question):
                try:
                    answer = getattr(loaded, question)(rows, *ARGUMENTS.get(question, ()))
                    if question.startswith("staged"):
                        list(answer)
                except ValueError as error:
                    if not any(answer in str(error) for answer in ANSWERS):
                        raise
    if hasattr(loaded, "get_feature_names_out"):
        loaded.get_feature_names_out()
    if hasattr(loaded, "splits_"):
        assert loaded.feature_importances_.shape == loaded.split_shares_.shape
        loaded.get_depths(), loaded.get_n_leaves(), loaded.get_mean_leaf_depths()
        repr(loaded.splits_)
        for tree in loaded.splits_:
            repr(tree)
        with contextlib.suppress(ValueError):  # of atoms that are not linear
            leaf = int(loaded.apply(rows)[0, 0])
            loaded.polytope(0, leaf).contains(samples())
    if hasattr(loaded, "features_"):  # the atoms of a linear model
        use(loaded.features_)
    pickle.dumps(loaded)


def try_state(name, seed, number):
    """Return what came of a damaged state, and of an exception its text."""
    data = damaged_pickle(name, seed, number)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            loaded = pickle.loads(data)
        except ValueError as error:
            if str(error).startswith("damaged") or "saved in format" in str(error):
                return "refused", ""
            return "exception", traceback.format_exc()
        except BaseException:
            return "exception", traceback.format_exc()
        try:
            use(loaded)
        except NotFittedError:  # a state without attributes is that of an unfitted model
            learned = [name for name in vars(loaded) if name.endswith("_")]
            return ("exception", traceback.format_exc()) if learned else ("unfitted", "")
        except BaseException:
            return "exception", traceback.format_exc()
    return "works", ""


def name_of(number):
    return list(MODELS)[number % len(MODELS)]


def give_up(signum, frame):
    raise TimeoutError(f"took more than {SECONDS} seconds")


def run_slice(seed, first, count, limit):
    """Try some states, and print what comes of each before the next begins."""
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, give_up)
    for number in range(first, first + count):
        signal.alarm(SECONDS)
        outcome, text = try_state(name_of(number), seed, number)
        signal.alarm(0)
        print(number, outcome, repr(text), flush=True)


def run(states, seed=0, first=0, limit=True):
    """Return counts of outcomes by model, and the failures: number, model, text."""
    counts = {name: collections.Counter() for name in MODELS}
    failures = []
    number, end = first, first + states
    while number < end:
        count = min(SLICE, end - number)
        command = [sys.executable, __file__, "--slice", str(number), str(count), str(seed)]
        child = subprocess.run(
            command + ([] if limit else ["--no-memory-limit"]),
            capture_output=True,
            text=True,
            check=False,
        )
        for line in child.stdout.splitlines():
            tried, outcome, text = line.split(" ", 2)
            counts[name_of(int(tried))][outcome] += 1
            if outcome == "exception":
                failures.append((int(tried), name_of(int(tried)), eval(text)))
            number = int(tried) + 1
        if child.returncode:
            counts[name_of(number)]["crash"] += 1
            said = child.stderr[-2000:]
            failures.append((number, name_of(number), f"exit code {child.returncode}\n{said}"))
            number += 1
    return counts, failures


def sanitizers():
    """Return the sanitizers that the core in use was built with."""
    code = Path(morforest._native.core.__file__).read_bytes()
    marks = {"AddressSanitizer": b"__asan_init", "UBSan": b"__ubsan_handle"}
    return [name for name, mark in marks.items() if mark in code]


def commit():
    """Return the commit of this folder, and whether files differ from it."""

    def git(*words):
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (", changed" if changed else "")


def write_report(path, counts, command):
    """Write the counts with what they were counted on."""
    sys.path.insert(0, str(ROOT))
    from measuring import machine
    from measuring.files import write_whole
    from measuring.tables import markdown

    core = Path(morforest._native.core.__file__).name.split(".")[0]
    built = " and ".join(sanitizers()) or "no sanitizers"
    lines = [
        [name, sum(found.values()), *(found[outcome] for outcome in OUTCOMES)]
        for name, found in counts.items()
    ]
    text = (
        "# Damaged models\n\n"
        "States of fitted models are damaged at random, pickled and loaded "
        "([the driver](../../tests/damage.py)).\n\n"
        '- **refused**: loading raises a ValueError that begins with "damaged", or says that the '
        "forest was saved in another format.\n"
        "- **unfitted**: what is left of the state is parameters alone, and the model says that it "
        "is not fitted.\n"
        "- **works**: every question can be asked, though the answers may be wrong. The error that "
        "X has values too large for the model counts as an answer, and so does the one that a "
        "forest has not kept its training samples.\n"
        "- **exception**: anything else was raised. This is a failure.\n"
        "- **crash**: the process ended, of itself or because a sanitizer found an error. This "
        "is a failure.\n\n"
        f"`{command}`, {machine.now()}, commit {commit()}, {machine.machine()}. The core is "
        f"`{core}`, built with {built}. morforest {morforest.__version__} with Python "
        f"{platform.python_version()}, NumPy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}.\n\n"
    )
    header = ["model", "states", *OUTCOMES]
    write_whole(Path(path), text + markdown(header, lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first state")
    parser.add_argument("--no-memory-limit", action="store_true", help="sanitizers need much")
    parser.add_argument("--report", help="Markdown file to write the counts to")
    parser.add_argument("--slice", type=int, nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.slice:
        first, count, seed = arguments.slice
        run_slice(seed, first, count, not arguments.no_memory_limit)
        return
    begin = time.monotonic()
    counts, failures = run(
        arguments.states, arguments.seed, arguments.first, not arguments.no_memory_limit
    )
    counts["all"] = sum(counts.values(), collections.Counter())
    width = max(map(len, counts))
    print(f"morforest {morforest.__version__}, seed {arguments.seed}")
    print(f"{'model':{width}}", *(f"{outcome:>10}" for outcome in OUTCOMES))
    for name, found in counts.items():
        print(f"{name:{width}}", *(f"{found[outcome]:>10}" for outcome in OUTCOMES))
    print(f"{time.monotonic() - begin:.0f} seconds")
    if arguments.report:
        words = shlex.join(sys.argv[1:])
        write_report(arguments.report, counts, f"python tests/damage.py {words}")
    for number, name, text in failures[:20]:
        print(f"\nstate {number}, {name}: {text}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
