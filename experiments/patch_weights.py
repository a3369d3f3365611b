"""Do patches with weights do better than sums on A, B and C, and how much longer do they take?

The paper says of weights other than 0 and 1 that they brought no improvement, and took longer.
Samples, repeats and patches are those of the study `simulations`.
"""

from pathlib import Path

import numpy as np

from experiments import models, simulations, verdicts
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
DATA = ("A-line", "B", "C")
SUMS = "1"
WEIGHTS = {SUMS: None, "uniform": "uniform", "Gaussian": "gaussian", "Gabor": "gabor"}
SIZES = (100, 1000)
REPEATS = 5
QUICK_SIZES = (100,)
QUICK_REPEATS = 1


def tasks(quick):
    tested = simulations.QUICK_TEST_SAMPLES if quick else simulations.TEST_SAMPLES
    return [
        Task(
            STUDY,
            {"data": data, "n": n, "weights": name, "repeat": repeat, "test_samples": tested},
            round(0.5 + n / 500, 2),
        )
        for data in DATA
        for n in (QUICK_SIZES if quick else SIZES)
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
        for name in WEIGHTS
    ]


def run(task):
    data, n = task.key["data"], int(task.key["n"])
    repeat, tested = int(task.key["repeat"]), int(task.key["test_samples"])
    shape = simulations.SIMULATIONS[data].shape
    model = models.make("MORF", data, shape, 2, n, seed=repeat, threads=1)
    model.set_params(model__dictionary__weights=WEIGHTS[task.key["weights"]])
    samples = simulations.samples(data, n, repeat, tested)
    found = simulations.fit_and_test(model, *samples)
    return {
        "seed": repeat,
        **{name: found[name] for name in ("error", "train_seconds", "test_seconds")},
    }


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if rows:
        write_whole(Path(csvs) / "patch-weights.md", tables.markdown(*compare(rows)))


def compare(rows):
    """Return errors, paired differences from sums with 95 % intervals, and ratios of times."""
    lines = []
    cells = tables.group(rows, "data", "n", "weights")
    for data in DATA:
        for n in sorted({n for d, n, _ in cells if d == data}):
            sums = {row["repeat"]: row for row in cells.get((data, n, SUMS), [])}
            for name in WEIGHTS:
                own = {row["repeat"]: row for row in cells.get((data, n, name), [])}
                both = sorted(own.keys() & sums.keys())
                if both:
                    lines.append(line(f"{data}, n = {n:,}", name, *pairs(own, sums, both)))
    header = ["", "weights", "test error", "less that of sums", "seconds of training / of sums"]
    return [*header, "of testing / of sums"], lines


def pairs(own, sums, both):
    return [own[r] for r in both], [sums[r] for r in both]


def line(place, name, own, sums):
    errors = [row["error"] for row in own]
    cells = ["", "", ""]
    if name != SUMS:
        gap = verdicts.difference(errors, [row["error"] for row in sums])
        cells[0] = f"{gap.mean:+.4f}" + ("" if np.isnan(gap.half) else f" ± {gap.half:.4f}")
        if gap.verdict != verdicts.NOISE:
            cells[0] = f"**{cells[0]}**"
        for i, measure in enumerate(("train_seconds", "test_seconds"), 1):
            ratios = [
                max(a[measure], 1e-3) / max(b[measure], 1e-3)
                for a, b in zip(own, sums, strict=True)
            ]
            cells[i] = f"{np.median(ratios):.1f}"
    return [place, name, tables.rate_and_error(errors), *cells]
