"""Series of unequal length: lists as they are, beside the padding and the resizing of aeon.

Each series is cut to a random part of its length. Each repeat splits a set anew and cuts other
parts; all methods of a repeat see the same ones. Nothing is tuned, as in `missing`.
"""

import time
import warnings
from pathlib import Path

import numpy as np

from experiments import missing
from experiments.missing import FOREST, SUMMARY, facts, flat, pairs, scores_of, summary_cells
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
SETS = missing.SERIES
END, START, BOTH = "the end", "the beginning", "both ends"
CUTS = (END, START, BOTH)
SHORTEST = 0.4  # part of the length that may be left
REPEATS, QUICK_REPEATS = 5, 2
FIRST_SEED = 45_000  # far from those of the other studies

OURS = ("forest patch", "forest series", "boosting")
MINIROCKET = "MiniRocket"
PEERS = (MINIROCKET, FOREST)
ALIGNMENTS = ("left", "right", "stretch")
PADDED, PADDED_LAST, RESIZED = "padded with 0", "padded with the last value", "resized"
BY_AEON = (PADDED, PADDED_LAST, RESIZED)
COSTS = {"forest series": 1.5, "boosting": 1.0, FOREST: 1.2, MINIROCKET: 3.0}  # CPU-seconds


def tasks(quick):
    for name in SETS:
        missing.load(name)  # fails before any work if data are missing
    return [
        Task(
            STUDY,
            {"data": data, "cut": cut, "classifier": classifier, "repeat": repeat},
            COSTS.get(classifier, 1.0),
        )
        for data in SETS
        for cut in CUTS
        for classifier in (*OURS, *PEERS)
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


def shortened(X, cut, seed):
    """Return a list of parts of the series; all channels of one are cut alike."""
    random = np.random.default_rng(seed)
    length = X.shape[-1]
    lengths = random.integers(round(SHORTEST * length), length, size=len(X), endpoint=True)
    spare = length - lengths
    first = {END: 0 * spare, START: spare, BOTH: random.integers(spare, endpoint=True)}[cut]
    return [x[:, f : f + n] for x, f, n in zip(X, first, lengths, strict=True)]


def by_aeon(how, X, length):
    """Bring all series to one length with aeon."""
    from aeon.transformations.collection.unequal_length import Padder, Resizer

    transformer = {
        PADDED: lambda: Padder(length),
        PADDED_LAST: lambda: Padder(length, fill_value="last"),
        RESIZED: lambda: Resizer(length),
    }[how]()
    return np.asarray(transformer.fit_transform(X))


def run(task):
    """Return a row per way to treat lengths."""
    classifier, seed = task.key["classifier"], FIRST_SEED + int(task.key["repeat"])
    data = missing.load(task.key["data"])
    train, test = missing.split(data, seed)
    X = shortened(data.X, task.key["cut"], seed)
    parts = [[X[i] for i in some] for some in (train, test)]
    rows = []
    for how in (*(ALIGNMENTS if classifier in OURS else ()), *BY_AEON):
        start = time.process_time()
        given = parts
        if how in BY_AEON:
            given = [by_aeon(how, some, data.X.shape[-1]) for some in parts]
        model = make(classifier, how, seed)
        if classifier == FOREST:
            given = [flat(some) for some in given]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # series that are longer than all in training
            predicted = model.fit(given[0], data.y[train]).predict(given[1])
        rows.append(
            {
                "lengths": how,
                "seed": seed,
                "n": len(train),
                "accuracy": round(float(np.mean(predicted == data.y[test])), 6),
                "used": round(time.process_time() - start, 3),
            }
        )
    total = round(sum(row["used"] for row in rows), 3)
    return [{**row, "cpu_seconds": total} for row in rows]


def make(classifier, how, seed):
    if classifier == MINIROCKET:
        from aeon.classification.convolution_based import MiniRocketClassifier

        return MiniRocketClassifier(random_state=seed)
    model = missing.make(classifier, seed, channel_axis=1)
    return model.set_params(align=how) if how in ALIGNMENTS else model


# --- tables --------------------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    scores = scores_of(rows, "lengths")
    write_whole(Path(csvs) / "lengths-accuracy.md", means_table(scores))
    text = summary_table(scores)
    write_whole(Path(csvs) / "lengths-summary.md", f"{text}\n{facts(rows)}\n")


def sorted_cells(scores, cut=None):
    cells = [cell for cell in scores if cut in (None, cell[1])]
    return sorted(cells, key=lambda cell: (SETS.index(cell[0]), CUTS.index(cell[1])))


def means_table(scores):
    """Return the mean accuracy over sets of each method, by what was cut off."""
    cuts = [cut for cut in CUTS if sorted_cells(scores, cut)]
    lines = []
    for classifier in (*OURS, *PEERS):
        for how in (*ALIGNMENTS, *BY_AEON):
            texts = []
            for cut in cuts:
                cells = sorted_cells(scores, cut)
                known = [scores[cell].get((classifier, how)) for cell in cells]
                means = [np.mean(list(found.values())) for found in known if found]
                texts.append(f"{100 * np.mean(means):.1f}" if len(means) == len(cells) else "")
            if any(texts):
                lines.append([classifier, named(how), *texts])
    return tables.markdown(["classifier", "lengths", *(f"without {cut}" for cut in cuts)], lines)


def named(how):
    return f'`align="{how}"`' if how in ALIGNMENTS else f"aeon: {how}"


def summary_table(scores):
    """Return each alignment against each way of aeon, with the same classifier, over all cells."""
    cells = sorted_cells(scores)
    lines = []
    for classifier in OURS:
        for how in ALIGNMENTS:
            for other in [*((classifier, way) for way in BY_AEON), (MINIROCKET, PADDED)]:
                both = pairs(scores, cells, (classifier, how), other)
                if both:
                    same = "" if other[0] == classifier else f"{other[0]}, "
                    lines.append(
                        [classifier, named(how), same + named(other[1]), *summary_cells(both)]
                    )
    return tables.markdown(["classifier", "lengths", "against", *SUMMARY], lines)
