"""Forests on five manifolds: a scalp, a sphere, a map, molecules, and images out of order.

Each repeat draws samples anew (of EEG and molecules, it splits them anew), and all methods of a
repeat see the same ones. Nothing is tuned: forests have 500 trees, and all else is a default unless
the name of a method says otherwise.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import SVC

from experiments import manifold_data as data
from experiments import verdicts
from experiments.manifold_data import GRID, PLAIN, UNLABELLED
from experiments.store import Task, origin, read
from measuring import tables
from measuring.files import write_whole
from morforest import (
    Axis,
    Graph,
    MorfClassifier,
    Neighbours,
    Patch,
    Similarity,
    SparseOblique,
)

STUDY = Path(__file__).stem
TREES = 500
NEAR = 4  # electrodes that each is connected with, from its own side
REPEATS, QUICK_REPEATS = 5, 1
FIRST_SEED = 60_000  # far from those of the other studies
SCALP, SPHERE, STATIONS, MOLECULES, PIXELS = "scalp", "sphere", "stations", "molecules", "pixels"
SETS = {
    SCALP: data.scalp,
    SPHERE: data.sphere,
    STATIONS: data.map_of_stations,
    MOLECULES: data.molecule_tables,
    PIXELS: data.shuffled,
}
COSTS = {SCALP: 0.6, SPHERE: 0.8, STATIONS: 0.3, MOLECULES: 1.0, PIXELS: 0.6}  # rough CPU-seconds


@dataclass(frozen=True)
class Method:
    """A forest: its dictionary, given the training samples, and the version that it looks at."""

    dictionary: Callable
    version: str = PLAIN
    options: dict = field(default_factory=dict)


def shortest_paths():
    """Return a support vector machine with the shortest-path kernel of the tables, normalised."""
    flat = FunctionTransformer(lambda X: X.reshape(len(X), -1))
    machine = make_pipeline(flat, Normalizer(), SVC(kernel="linear"))
    return GridSearchCV(machine, {"svc__C": 10.0 ** np.arange(-1, 5)}, cv=5)


def along_the_scalp(weights=None):
    """Return sums over near electrodes and an interval of time."""
    return Patch(along={0: Neighbours(data.electrodes(), k=NEAR)}, weights=weights)


def scalp_and_time(split):
    """Return a graph over all values of a trial: near electrodes, and successive times."""
    times = split.train[PLAIN].shape[2]
    near = kneighbors_graph(data.electrodes(), NEAR)
    next_to = sp.diags_array(np.ones(times - 1), offsets=1)
    alike = sp.eye_array(len(data.ELECTRODES))
    return Graph(sp.kron(near, sp.eye_array(times)) + sp.kron(alike, next_to))


PLAINEST = {
    "RF": Method(lambda split: Axis()),
    "SPORF": Method(lambda split: SparseOblique()),
}
KERNEL = "SVM, shortest paths"
UNSHUFFLED = ", pixels in place"
IN_PLACE = f"MORF{UNSHUFFLED}"
LEARNED = "Similarity.from_data"
ALONG = "Patch along the scalp"
METHODS = {
    SCALP: {
        **PLAINEST,
        "MORF, electrodes in the order of the file": Method(lambda split: Patch()),
        "MORF, each electrode alone": Method(lambda split: Patch(), options={"channel_axis": 1}),
        "Graph of electrodes and times": Method(scalp_and_time),
        ALONG: Method(lambda split: along_the_scalp()),
        f"{ALONG}, random signs": Method(lambda split: along_the_scalp("sign")),
    },
    SPHERE: {
        **PLAINEST,
        "MORF, vertices in their order": Method(lambda split: Patch()),
        "MORF, map of latitudes and longitudes": Method(
            lambda split: Patch(boundary=("zero", "wrap")), GRID
        ),
        "Neighbours": Method(lambda split: Neighbours(data.vertices(), metric="great_circle")),
    },
    STATIONS: {
        **PLAINEST,
        "MORF, stations in their order": Method(lambda split: Patch()),
        "MORF, grid of nearest stations": Method(lambda split: Patch(), GRID),
        "Neighbours": Method(lambda split: Neighbours(data.stations())),
        LEARNED: Method(lambda split: Similarity.from_data(split.train[PLAIN], random_state=0)),
    },
    MOLECULES: {
        **PLAINEST,
        "MORF, elements as if in order": Method(lambda split: Patch()),
        "Patch, elements without order": Method(
            lambda split: Patch(contiguous=(True, False, False))
        ),
        KERNEL: None,
    },
    PIXELS: {
        "RF, pixels in place": Method(lambda split: Axis(), GRID),
        "SPORF, pixels in place": Method(lambda split: SparseOblique(), GRID),
        IN_PLACE: Method(lambda split: Patch(), GRID),
        **PLAINEST,
        "MORF": Method(lambda split: Patch(), options={"data_shape": (28, 28)}),
        LEARNED: Method(lambda split: Similarity.from_data(split.train[PLAIN], random_state=0)),
        "Similarity.from_data, 10,000 images": Method(
            lambda split: Similarity.from_data(split.train[UNLABELLED], random_state=0)
        ),
    },
}


def tasks(quick):
    for name in (SCALP, MOLECULES, PIXELS):
        SETS[name](FIRST_SEED)  # fails before any work if data are missing
    return [
        Task(STUDY, {"data": name, "classifier": classifier, "repeat": repeat}, COSTS[name])
        for name in SETS
        for classifier in METHODS[name]
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


def fit(name, classifier, split, seed):
    """Return a fitted model, and the version of the samples that it looks at."""
    method = METHODS[name][classifier]
    if method is None:
        return shortest_paths().fit(split.train[PLAIN], split.y_train), PLAIN
    forest = MorfClassifier(
        method.dictionary(split),
        n_estimators=TREES,
        n_jobs=1,
        random_state=seed,
        **method.options,
    )
    return forest.fit(split.train[method.version], split.y_train), method.version


def run(task):
    """Return the errors of all folds together."""
    name, seed = task.key["data"], FIRST_SEED + int(task.key["repeat"])
    wrong, tested, train_seconds, test_seconds = 0, 0, 0.0, 0.0
    splits = SETS[name](seed)
    for split in splits:
        start = time.process_time()
        model, version = fit(name, task.key["classifier"], split, seed)
        fitted = time.process_time()
        wrong += int(np.sum(model.predict(split.test[version]) != split.y_test))
        tested += len(split.y_test)
        train_seconds += fitted - start
        test_seconds += time.process_time() - fitted
    return {
        "n": len(splits[0].y_train),
        "test_samples": tested,
        "seed": seed,
        "error": round(wrong / tested, 6),
        "train_seconds": round(train_seconds, 3),
        "test_seconds": round(test_seconds, 3),
    }


# --- tables ---------------------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    for name in SETS:
        found = [row for row in rows if row["data"] == name]
        if found:
            text = f"{table(name, found)}\n{facts(found)}{shuffling(found)}\n"
            write_whole(Path(csvs) / f"manifold-{name}.md", text)


def table(name, rows):
    """Return errors, and what they are less than those of other methods of the same repeats."""
    errors = {}
    for row in rows:
        errors.setdefault(row["classifier"], {})[row["repeat"]] = row["error"]
    against = [other for other in ("RF", IN_PLACE) if other in errors]
    header = ["", "error", *(f"better than {other}" for other in against), "CPU-seconds of a fit"]
    lines = []
    for classifier in METHODS[name]:
        if classifier not in errors:
            continue
        own = errors[classifier]
        seconds = [row["train_seconds"] for row in rows if row["classifier"] == classifier]
        cells = [tables.rate_and_error(list(own.values()))]
        cells += ["" if o == classifier else difference(own, errors[o]) for o in against]
        folds = data.FOLDS if name == MOLECULES else 1
        lines.append([classifier, *cells, f"{np.median(seconds) / folds:.2g}"])
    return tables.markdown(header, lines)


def difference(own, others):
    """Return the mean difference in points of error on the repeats that both have."""
    shared = sorted({*own} & {*others})
    if not shared:
        return ""
    pair = ([others[i] for i in shared], [own[i] for i in shared])
    return verdicts.difference(*pair).text()


def shuffling(rows):
    """Say what shuffling costs, and how near the learned manifold comes to the true one."""
    errors = {}
    for row in rows:
        errors.setdefault(row["classifier"], {})[row["repeat"]] = row["error"]
    costs = [
        f"{name} {difference(errors[f'{name}{UNSHUFFLED}'], errors[name])}"
        for name in ("RF", "SPORF", "MORF")
        if name in errors and f"{name}{UNSHUFFLED}" in errors
    ]
    text = f" In place, better than shuffled by: {'; '.join(costs)}." if costs else ""
    if LEARNED in errors and any(errors.get(IN_PLACE, {}).values()):
        learned, true = (np.mean([*errors[name].values()]) for name in (LEARNED, IN_PLACE))
        text += f" The error of {LEARNED} is {learned / true:.2f} times that of {IN_PLACE}."
    return text


def facts(rows):
    repeats = len({row["repeat"] for row in rows})
    return (
        f"Mean error ± standard error of {repeats} repeats, and differences in points of error, "
        f"with 95 % intervals of paired repeats. {origin(rows)}"
    )
