"""What our departures from the paper and from its first implementation change, each undone alone.

- *exact search*: large nodes search all thresholds, and not those between 64 bins.
- *one empty position*: a patch has one more position along each axis, at which it is empty.
- *votes*: a forest counts the votes of its trees, and not their leaf frequencies.
- *features on average*: of an atom of SPORF, where the paper does not say how many there are.

A node of ours draws again if no candidate can split. Nothing turns that off, so the share of nodes
is counted in which candidates would have to be drawn again. Samples and repeats are those of the
studies `simulations` and `mnist`.
"""

import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from experiments import mnist, models, published, simulations, style, verdicts
from experiments.complexity import candidates
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole
from morforest import Atoms, SparseOblique

STUDY = Path(__file__).stem
AS_IS, EXACT, EMPTY, ALL = "as it is", "exact search", "one empty position", "all of the authors'"
REDRAWN = "nodes that draw again"
FEW, RATE = "1.5 features on average", "rate 1.5: 1.93 on average"
# Poisson rates that, conditioned on at least one, have these means; ours, 2, has the mean 2.31.
RATES = {FEW: 0.8742174657987171, RATE: 1.5}
VARIANTS = {
    "MORF": (AS_IS, EXACT, EMPTY, ALL, REDRAWN),
    "SPORF": (AS_IS, FEW, RATE),
    "RF": (AS_IS, EXACT),
}
SIMULATED = ("A-line", "B", "C", "D", "E")
SIZES = (1000,)
IMAGES = (2500, 5000)  # where our errors on MNIST are below the published ones
REPEATS = 3
FOR_SPORF = (2500,)  # images for which the number of features per atom is varied
QUICK_SIZES = (100,)
COUNTED_TREES = 10
COST = {"MNIST": 1.2e-3, "B": 5e-4}  # CPU-seconds per sample and forest


def tasks(quick):
    sizes = QUICK_SIZES if quick else SIZES
    return [
        *(
            task(data, n, forest, variant, repeat, quick)
            for data in SIMULATED
            for n in sizes
            for forest in ("MORF", "SPORF")
            for variant in variants(forest, data)
            for repeat in range(simulations.QUICK_REPEATS if quick else REPEATS)
        ),
        *(
            task(mnist.DATA, n, forest, variant, repeat, quick)
            for n in (() if quick else IMAGES)
            for forest in VARIANTS
            if forest != "SPORF" or n in FOR_SPORF
            for variant in variants(forest, mnist.DATA)
            for repeat in range(REPEATS)
        ),
    ]


def task(data, n, forest, variant, repeat, quick):
    tested = simulations.QUICK_TEST_SAMPLES if quick else simulations.TEST_SAMPLES
    key = {"data": data, "n": n, "forest": forest, "variant": variant, "repeat": repeat}
    cost = 0.4 + COST.get(data, 2e-4) * n * (2 if variant in (EMPTY, ALL) else 1)
    return Task(STUDY, {**key, "test_samples": tested}, round(cost, 2))


def variants(forest, data):
    left_out = () if data == mnist.DATA else (ALL,)
    if data == "E":  # its patches have rows in any order, which `one_more_position` does not list
        left_out += (EMPTY,)
    return [variant for variant in VARIANTS[forest] if variant not in left_out]


def run(task):
    start = time.process_time()
    found = measure(task)
    return {**found, "cpu_seconds": round(time.process_time() - start, 3)}


def measure(task):
    """Return the errors of a forest, or how many of its nodes draw again."""
    data, forest, variant = (task.key[name] for name in ("data", "forest", "variant"))
    n, repeat, tested = (int(task.key[name]) for name in ("n", "repeat", "test_samples"))
    if data == mnist.DATA:
        images, labels, X_test, y_test = mnist.images()
        rows = mnist.chosen(labels, n, repeat)
        X, y, shape, classes = images[rows], labels[rows], (28, 28), 10
    else:
        X, y, X_test, y_test = simulations.samples(data, n, repeat, tested)
        shape, classes = simulations.SIMULATIONS[data].shape, 2
    model = models.make(forest, data, shape, classes, n, seed=repeat, threads=1).model
    found = {"seed": repeat, "error": "", "votes_error": "", "redrawn": ""}
    if variant == REDRAWN:
        model.set_params(n_estimators=COUNTED_TREES, keep_samples=True)
        return {**found, "redrawn": redrawn(model.fit(X, y), X)}
    if variant in (EXACT, ALL):
        model.set_params(splitter="exact")
    if variant in RATES:
        model.set_params(dictionary=SparseOblique(RATES[variant]))
    if variant in (EMPTY, ALL):
        # The sample becomes a row, and a cell that is always zero stands for no cells at all.
        given = candidates(model.max_features, int(np.prod(shape)))
        model.set_params(dictionary=one_more_position(model.dictionary, shape), max_features=given)
        X, X_test = (np.pad(x.reshape(len(x), -1), ((0, 0), (0, 1))) for x in (X, X_test))
    model.fit(X, y)
    errors = {
        "error": float(np.mean(model.predict(X_test) != y_test)),
        "votes_error": float(np.mean(by_votes(model, X_test) != y_test)),
    }
    return {**found, **errors}


def one_more_position(patch, shape):
    """Return the same patches as listed atoms, with one more position along each axis.

    An axis of length W has W + w positions for a size w, of which one has no cell.
    """
    intervals = []
    for low, high, length in zip(patch.min_size, patch.max_size, shape, strict=True):
        found = {}  # an interval, with its probability; the sizes are equally likely
        for size in range(low, high + 1):
            for start in range(-size, length):
                cells = range(max(start, 0), min(start + size, length))
                share = 1 / (high - low + 1) / (length + size)
                found[cells] = found.get(cells, 0) + share
        intervals.append(found)
    if len(shape) == 1:
        boxes = {tuple(cells): p for cells, p in intervals[0].items()}
    else:
        rows, columns = intervals
        boxes = {}
        for of_rows, p in rows.items():
            for of_columns, q in columns.items():
                cells = tuple(shape[1] * i + j for i in of_rows for j in of_columns)
                boxes[cells] = boxes.get(cells, 0) + p * q
    nothing = int(np.prod(shape))  # the cell that is always zero
    atoms = sp.lil_matrix((len(boxes), nothing + 1))
    for atom, cells in enumerate(boxes):
        atoms[atom, list(cells) or [nothing]] = 1
    return Atoms(atoms.tocsr(), probabilities=list(boxes.values()))


def by_votes(model, X):
    """Return the class that most trees vote for; the first of equals."""
    forest = model._forest
    node = model.apply(X) + forest.tree_begin.astype(np.int64)[:-1]
    # A payload of a leaf is its class, or after the classes the number of its distribution.
    size = forest.distribution_size.astype(np.int64)
    weights = np.zeros((len(size), len(model.classes_)))
    weights[np.repeat(np.arange(len(size)), size), forest.distribution_class] = (
        forest.distribution_weight
    )
    classes = np.append(np.arange(forest.class_count), weights.argmax(axis=1))
    votes = classes[-1 - forest.next[node].astype(np.int64)]
    counts = np.zeros((len(X), len(model.classes_)), dtype=np.int64)
    np.add.at(counts, (np.arange(len(X))[:, None], votes), 1)
    return model.classes_[counts.argmax(axis=1)]


def redrawn(model, X):
    """Return the share of split nodes in which as many new candidates are all constant.

    Constant are candidates that have one value on all samples of the node, with which they cannot
    split it.
    """
    forest, samples = model._forest, model._leaf_samples
    rows = X.reshape(len(X), -1).astype(np.float64)
    given = candidates(model.max_features, rows.shape[1])
    random = np.random.RandomState(0)
    constant = []
    for tree in range(samples.n_trees):
        first, members, _ = samples.of_tree(tree)
        begin = int(forest.tree_begin[tree])
        children = forest.next[begin : int(forest.tree_begin[tree + 1])].astype(np.int64)
        of_node = {}
        for node in reversed(range(len(children))):
            if children[node] < 0:
                of_node[node] = members[int(first[node]) : int(first[node + 1])]
                continue
            left = int(children[node])
            of_node[node] = np.concatenate([of_node.pop(left), of_node.pop(left + 1)])
            atoms = model.dictionary.sample(X.shape[1:], given, random_state=random)
            constant.append(not np.ptp(atoms @ rows[of_node[node]].T, axis=1).any())
    return float(np.mean(constant))


# --- tables ---------------------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    write_whole(Path(csvs) / "departures.md", tables.markdown(*compare(rows)))
    write_whole(Path(csvs) / "departures-mnist.md", tables.markdown(*beside_published(rows)))
    write_whole(Path(csvs) / "departures-redrawn.md", tables.markdown(*count(rows)))


def places(rows):
    return sorted({(row["data"], row["n"]) for row in rows})


def errors_of(rows, place, forest, variant, measure="error"):
    """Return the values of a measure by repeat."""
    wanted = (*place, forest, variant)
    names = ("data", "n", "forest", "variant")
    return {
        row["repeat"]: row[measure] for row in rows if tuple(row[name] for name in names) == wanted
    }


def excess(ours, others):
    """Return the mean difference with its 95 % interval; bold where that leaves out zero."""
    both = sorted(ours.keys() & others.keys())
    if not both:
        return ""
    gap = verdicts.difference(*([found[r] for r in both] for found in (others, ours)))
    if gap.half == gap.mean == 0:
        return "0"
    text = f"{gap.mean:+.4f} ± {gap.half:.4f}"
    return f"**{text}**" if gap.verdict != verdicts.NOISE else text


def compare(rows):
    """Return the error of the forests as they are, and by how much each change raises it."""
    lines = []
    for place in places(rows):
        for forest in style.FORESTS:
            ours = errors_of(rows, place, forest, AS_IS)
            if not ours:
                continue
            cells = [excess(ours, errors_of(rows, place, forest, AS_IS, "votes_error"))]
            for variant in (EXACT, EMPTY, FEW, RATE):
                cells.append(excess(ours, errors_of(rows, place, forest, variant)))
            name = f"{place[0]}, n = {place[1]:,}"
            lines.append([name, forest, tables.rate_and_error(list(ours.values())), *cells])
    return ["", "forest", AS_IS, "votes", EXACT, EMPTY, FEW, RATE], lines


def beside_published(rows):
    """Return the errors on MNIST beside the authors', as it is and with all of their choices."""
    authors, lines = published.errors(mnist.DATA), []
    for data, n in places(rows):
        if data != mnist.DATA:
            continue
        cells = []
        for variant, measure in ((AS_IS, "error"), (ALL, "votes_error")):
            found = list(errors_of(rows, (data, n), "MORF", variant, measure).values())
            cells.append(tables.rate_and_error(found) if found else "")
        rate = authors["MORF"].get(n)
        lines.append([f"{n:,}", "" if rate is None else tables.rate(rate), *cells])
    return ["n", "published", AS_IS, "exact search, empty positions and votes"], lines


def count(rows):
    """Return the share of nodes that draw again."""
    lines = []
    for place in places(rows):
        found = list(errors_of(rows, place, "MORF", REDRAWN, "redrawn").values())
        if found:
            lines.append([place[0], f"{place[1]:,}", f"{100 * np.mean(found):.2f} %"])
    return ["", "n", "split nodes without a candidate that can split"], lines
