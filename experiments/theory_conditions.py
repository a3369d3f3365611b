"""What happens if one condition of the consistency theorems is dropped, and all others are kept?

Each distribution is known, and was made for one condition: where it is needed, or where it might be
thought to be. The forests of the small images also compare patches that do not include single
features.
"""

from pathlib import Path

import numpy as np

from experiments import style, theory
from experiments.store import Task, read
from experiments.theory_rates import draw_line, finish
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole
from morforest import Axis, MorfClassifier, Patch, consistent

STUDY = Path(__file__).stem
SIZES = (300, 1000, 3000, 10_000, 30_000)
MORE = {"1-D": (100_000,)}  # up to 30,000, the rates are too uncertain to tell them apart
REPEATS = 5
FEWER = {30_000: 3}  # repeats from a size on
TEST_SAMPLES = 5000
QUICK_SIZES = (300, 1000, 3000)
QUICK_REPEATS = 2
QUICK_TEST_SAMPLES = 1000
TREES = 1000
LARGE_TREES = 300  # where a tree draws half of the samples
IMAGES = ("stripes", "pixel", "box")
DATA = ("constant", "1-D", "interaction", *IMAGES)

ALL = theory.ALL
NO_SINGLE = "no single features"
DROPPED = {
    ALL: {},
    "not honest": {"honest": False},
    "s = n/2": {"max_samples": 0.5, "n_estimators": LARGE_TREES},
    "not balanced": {"min_child_fraction": 0.0},
    "no random splits": {"random_split_rate": 0.0},
}
# Patches of two rows lie inside the image, so that no sum can separate alternating rows.
INSIDE = Patch((2, 2), (2, 5), boundary="inside")
PATCHES = {
    "2 rows": Patch((2, 2), (2, 5)),
    "2 to 5 rows, inside": Patch((2, 2), (5, 5), boundary="inside"),
    "2 to 5 rows": Patch((2, 2), (5, 5)),
    "single features only": Axis(),
}
# Names of all forests of the images as dictionaries: the first two are forests of DROPPED, too.
NAMES = {ALL: "2 rows, inside; single features", NO_SINGLE: "2 rows, inside"}
LOOKS = {
    ALL: {"color": "#d1495b", "linestyle": "-", "marker": "*", "linewidth": 2.4, "zorder": 5},
    "not honest": {"color": "#8d99ae", "linestyle": "--", "marker": "o"},
    "s = n/2": {"color": "#6a994e", "linestyle": "-.", "marker": "s"},
    "not balanced": {"color": "#7b5ea7", "linestyle": ":", "marker": "v"},
    "no random splits": {"color": "#edae49", "linestyle": "--", "marker": "D"},
    NO_SINGLE: {"color": "#00798c", "linestyle": "-", "marker": "^", "linewidth": 1.8},
    "2 rows": {"color": "#00798c", "linestyle": ":", "marker": "^"},
    "2 to 5 rows, inside": {"color": "#7b5ea7", "linestyle": "-", "marker": "s"},
    "2 to 5 rows": {"color": "#7b5ea7", "linestyle": ":", "marker": "s"},
    "single features only": {"color": "#edae49", "linestyle": "--", "marker": "D"},
}


def classifiers(data):
    return (*DROPPED, NO_SINGLE, *PATCHES) if data in IMAGES else tuple(DROPPED)


def repeats(n, quick):
    if quick:
        return QUICK_REPEATS
    return min([REPEATS, *(count for size, count in FEWER.items() if n >= size)])


def tasks(quick):
    tested = QUICK_TEST_SAMPLES if quick else TEST_SAMPLES
    return [
        Task(
            STUDY,
            {
                "data": data,
                "n": n,
                "classifier": name,
                "repeat": repeat,
                "test_samples": tested,
            },
            cost(name, n),
        )
        for data in DATA
        for n in (QUICK_SIZES if quick else (*SIZES, *MORE.get(data, ())))
        for name in classifiers(data)
        for repeat in range(repeats(n, quick))
    ]


def cost(name, n):
    """Guess CPU-seconds."""
    if name == "s = n/2":
        return round(0.2 + 1.5e-4 * n, 3)
    return round(0.2 + 1.2e-4 * n, 3)


def make(data, name, seed):
    """Return a forest of one thread that meets all conditions but one."""
    image = data in IMAGES
    # Among all features the best is chosen: nothing but random splits draws a feature by chance.
    estimator = MorfClassifier(
        INSIDE if image else Axis(),
        n_estimators=TREES,
        max_features="sqrt" if image else None,
        n_jobs=1,
        random_state=seed,
    )
    forest = consistent(estimator)
    if name in DROPPED:
        return forest.set_params(**DROPPED[name])
    return forest.set_params(dictionary=PATCHES.get(name, INSIDE))


def run(task):
    data, n, repeat = task.key["data"], int(task.key["n"]), int(task.key["repeat"])
    model = make(data, task.key["classifier"], seed=repeat)
    return theory.measure(model, data, n, repeat, int(task.key["test_samples"]))


# --- figures and tables ---------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    save(draw_conditions(rows), Path(pngs) / "theory-conditions.png")
    save(draw_patches(rows), Path(pngs) / "theory-patches.png")
    forests = (*DROPPED, NO_SINGLE)
    write_whole(Path(csvs) / "theory-conditions.md", table(rows, forests) + theory.below(rows))
    images = [row for row in rows if row["data"] in IMAGES]
    write_whole(Path(csvs) / "theory-patches.md", patch_table(images) + theory.below(images))


def of(rows, data, name):
    return [row for row in rows if (row["data"], row["classifier"]) == (data, name)]


def draw_conditions(rows):
    """Draw the distance of posteriors above, and the excess risk on images below."""
    figure, panels = plt.subplots(2, 3, figsize=(style.WIDEST, 6.6), layout="constrained")
    for axes, data in zip(panels.ravel(), DATA, strict=True):
        measure, label = "distance", "mean |p_n(x) - p(x)|"
        if data in IMAGES:
            measure, label = "excess", "excess risk L_n - L*"
        for name in (*DROPPED, NO_SINGLE):
            draw_line(axes, of(rows, data, name), measure, name, **LOOKS[name])
        finish(axes, {row["n"] for row in rows if row["data"] == data})
        axes.set_title(theory.distributions()[data].title, weight="bold")
        if axes in panels[:, 0]:
            axes.set_ylabel(label)
        if axes in panels[1]:
            axes.set_xlabel("training samples n")
    style.legend(figure, panels.ravel()[::-1])  # the images have all forests
    return figure


def draw_patches(rows):
    figure, panels = plt.subplots(1, 3, figsize=(style.WIDEST, 3.7), layout="constrained")
    for axes, data in zip(panels, IMAGES, strict=True):
        for name in (ALL, NO_SINGLE, *PATCHES):
            label = NAMES.get(name, name)
            draw_line(axes, of(rows, data, name), "excess", label, **LOOKS[name])
        finish(axes, {row["n"] for row in rows if row["data"] == data}, lowest=1e-3)
        axes.set_title(theory.distributions()[data].title, weight="bold")
        axes.set_xlabel("training samples n")
    panels[0].set_ylabel("excess risk L_n - L*")
    style.legend(figure, panels)
    return figure


def values(rows, data, name, measure):
    """Return the sizes, the means over repeats, and the values at the largest size."""
    found = of(rows, data, name)
    if not found:
        return [], [], []
    places, means, _ = style.curve(found, "n", measure)
    return places, means, [row[measure] for row in found if row["n"] == places[-1]]


def table(rows, names):
    lines = []
    for data in DATA:
        for name in names:
            if not of(rows, data, name):
                continue
            cells = []
            for measure in ("excess", "distance"):
                places, means, last = values(rows, data, name, measure)
                cells += [tables.rate_and_error(last), theory.fit_rate(places, means) or ""]
            places, _, last = values(rows, data, name, "bias")
            lines.append([data, name, f"{places[-1]:,}", *cells, f"{np.mean(last):+.4f}"])
    heads = ["data", "forest", "n", "L_n - L*", "rate", "mean abs(p_n - p)", "rate", "mean p_n - p"]
    return tables.markdown(heads, lines)


def patch_table(rows):
    """Return the excess risk by dictionary and size."""
    sizes = sorted({row["n"] for row in rows})
    lines = []
    for data in IMAGES:
        for name in (ALL, NO_SINGLE, *PATCHES):
            found = of(rows, data, name)
            if not found:
                continue
            places, means, _ = values(rows, data, name, "excess")
            cells = []
            for n in sizes:
                at = [row["excess"] for row in found if row["n"] == n]
                cells.append(tables.rate_and_error(at) if at else "")
            rate = theory.fit_rate(places, means) or ""
            lines.append([data, NAMES.get(name, name), *cells, rate])
    return tables.markdown(["data", "atoms", *(f"n = {n:,}" for n in sizes), "rate"], lines)
