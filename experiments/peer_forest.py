"""Has the forest of patches of treeple, the package of the paper's authors, the same errors?

It runs in an environment of its own, on the samples of the studies `simulations` and `mnist`, whose
rows of MORF are its opponents. Its patches always lie inside; those of the paper may reach over the
edge. So MORF is measured again with patches inside.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from experiments import mnist, models, simulations, verdicts
from experiments.complexity import candidates
from experiments.store import Task, read
from measuring import peers, tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
ROOT = Path(__file__).resolve().parent.parent
PEER, INSIDE, OURS = "treeple", "MORF, patches inside", "MORF"
SIZES = {
    **dict.fromkeys(("A-line", "B", "C", "D"), (50, 200, 1000)),
    "E": (100, 200, 800),
    mnist.DATA: (1000,),
}
FEWER = {200: 3, 800: 3, 1000: 3}  # repeats
QUICK_SIZES = {"C": (50,)}
QUICK_REPEATS = 1
TREES = 500


def tasks(quick):
    return [
        Task(
            STUDY,
            {"data": data, "n": n, "classifier": classifier, "repeat": repeat},
            round((1.0 + n / 200) if classifier == PEER else 0.5 + n / 1000, 2),
        )
        for data, sizes in (QUICK_SIZES if quick else SIZES).items()
        for n in sizes
        for classifier in (PEER, INSIDE)
        for repeat in range(QUICK_REPEATS if quick else FEWER.get(n, simulations.REPEATS))
    ]


def run(task):
    data, classifier = task.key["data"], task.key["classifier"]
    n, repeat = int(task.key["n"]), int(task.key["repeat"])
    X, y, X_test, y_test = samples(data, n, repeat)
    classes = len(np.unique(y_test))
    if classifier == INSIDE:
        model = models.make("MORF", data, X.shape[1:], classes, n, seed=repeat, threads=1)
        model.set_params(model__dictionary__boundary="inside")
        found = simulations.fit_and_test(model, X, y, X_test, y_test)
        found = {key: found[key] for key in ("error", "train_seconds", "test_seconds")}
        return {"seed": repeat, **found, "peer": ""}
    python = peers.interpreter(PEER)
    if python is None:
        raise RuntimeError("the environment of treeple cannot be made; pip says why above")
    given = settings(data, X.shape[1:])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "samples.npz"
        rows = (x.reshape(len(x), -1).astype(np.float32) for x in (X, X_test))
        np.savez(file, **dict(zip(("X", "X_test"), rows, strict=True)), y=y, y_test=y_test)
        request = {"file": str(file), "settings": {**given, "random_state": repeat}}
        answer = subprocess.run(
            [str(python), "-m", "experiments.treeple_worker"],
            input=json.dumps(request) + "\n",
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
    if answer.returncode:
        raise RuntimeError(f"treeple's process ended with {answer.returncode}: {answer.stderr}")
    return {
        "seed": repeat,
        **json.loads(answer.stdout),
        "peer": "; ".join(peers.ENVIRONMENTS[PEER]),
    }


def samples(data, n, repeat):
    """Return training samples and labels of a repeat, then those for testing."""
    if data != mnist.DATA:
        return simulations.samples(data, n, repeat, simulations.TEST_SAMPLES)
    X, y, X_test, y_test = mnist.images()
    rows = mnist.chosen(y, n, repeat)
    return X[rows], y[rows], X_test, y_test


def settings(data, shape):
    """Return MORF's settings as treeple's parameters; it takes at least two axes.

    Rows of E are contiguous here: of rows in any order, treeple takes one row several times.
    """
    given = models.settings(OURS, data)
    dims = shape if len(shape) > 1 else (1, *shape)
    return {
        "n_estimators": TREES,
        "max_features": candidates(given["max_features"], int(np.prod(shape))),
        "data_dims": dims,
        "min_patch_dims": given["patch"]["min_size"],
        "max_patch_dims": given["patch"]["max_size"],
        "n_jobs": 1,
    }


# --- tables ---------------------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    for study in ("simulations", "mnist"):
        rows += [row for row in read(csvs, study) if row["classifier"] == OURS]
    write_whole(Path(csvs) / "peer-forest.md", tables.markdown(*compare(rows)))


def compare(rows):
    """Return errors side by side, and the paired differences with their 95 % intervals."""
    lines = []
    cells = tables.group(rows, "data", "n", "classifier")
    for data, n, classifier in cells:
        if classifier != PEER:
            continue
        values = {
            name: {row["repeat"]: row["error"] for row in cells.get((data, n, name), [])}
            for name in (OURS, INSIDE, PEER)
        }
        both = sorted(set.intersection(*(set(found) for found in values.values())))
        errors = {name: [found[r] for r in both] for name, found in values.items()}
        gaps = [text(errors[name], errors[PEER]) for name in (OURS, INSIDE)]
        means = [tables.rate_and_error(found) if found else "" for found in errors.values()]
        lines.append([data, f"{n:,}", len(both), *means, *gaps])
    lines.sort(key=lambda line: (line[0], int(line[1].replace(",", ""))))
    header = ["", "n", "repeats", OURS, INSIDE, PEER, "MORF less treeple [95 %]"]
    return [*header, "inside less treeple [95 %]"], lines


def text(ours, theirs):
    if not ours:
        return ""
    gap = verdicts.difference(ours, theirs)
    found = f"{gap.mean:+.4f}"
    if np.isnan(gap.half):
        return found
    found += f" [{gap.mean - gap.half:+.4f}, {gap.mean + gap.half:+.4f}]"
    return found if gap.verdict == verdicts.NOISE else f"**{found}**"
