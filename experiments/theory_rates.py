"""How fast do forests approach the truth, as n grows, with and without the theorems' conditions?

The distributions are known, so that the excess risk L_n - L* and the mean of |p_n(x) - p(x)| can be
measured without the noise of test labels. Each repeat has training and test samples of its own.
"""

from pathlib import Path

import numpy as np
from matplotlib.ticker import LogLocator

from experiments import style, theory
from experiments.store import Task, read
from measuring import tables
from measuring.figures import log_x, log_y, plt, save
from measuring.files import write_whole
from morforest import Patch

STUDY = Path(__file__).stem
SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
REPEATS = 5
LARGE = 30_000  # from this size on, only what the claims are about has all repeats
FEWER = 3
IMAGES = (theory.PATCH, "28 x 28")
IMAGE_REPEATS = {True: 3, False: 1}  # of 100,000 images, by whether the claims are about them
# Where the classes differ by one atom, nodes have as many candidates as there are pixels, so that
# most have this atom among them. Trees of all samples would then take hours beyond this size.
CANDIDATES = 28 * 28
LAST = 3000
PATCH_TREES = {True: 200, False: 100}  # by whether trees draw few samples
TEST_SAMPLES = 10_000
QUICK_SIZES = (100, 1000, 3000)
QUICK_REPEATS = 2
QUICK_TEST_SAMPLES = 2000
PLAIN, HONEST, SMALL_OOB = "plain, s = n", "honest, s = n^0.7", "honest by oob, s = n^0.7"
BRIEF = (PLAIN, HONEST, theory.ALL)  # the kinds of the other dictionaries
# The dictionary that has all kinds of forests, and the others.
DICTIONARIES = {
    "1-D": ("RF",),
    "2-D": ("SPORF", "RF"),
    "2-D numbers": ("SPORF",),
    theory.PATCH: ("MORF",),
    "28 x 28": ("MORF", "RF", "SPORF"),
}
SHOWN = ("1-D", "2-D", *IMAGES)
MEASURES = {"excess": "excess risk L_n - L*", "distance": "mean |p_n(x) - p(x)|"}
LOOKS = {
    "plain, s = n": {"color": "#8d99ae", "linestyle": "-", "marker": "o"},
    "plain, s = n/2": {"color": "#8d99ae", "linestyle": "--", "marker": "s"},
    "plain, s = n^0.7": {"color": "#8d99ae", "linestyle": ":", "marker": "^"},
    "honest, s = n": {"color": "#00798c", "linestyle": "-", "marker": "o"},
    "honest by oob, s = n": {"color": "#7b5ea7", "linestyle": "-", "marker": "D"},
    "honest, s = n/2": {"color": "#00798c", "linestyle": "--", "marker": "s"},
    "honest, s = n^0.7": {"color": "#00798c", "linestyle": ":", "marker": "^"},
    "honest by oob, s = n^0.7": {"color": "#7b5ea7", "linestyle": ":", "marker": "P"},
    theory.SINGLE: {"color": "#edae49", "linestyle": ":", "marker": "v", "linewidth": 2.0},
    theory.ALL: {"color": "#d1495b", "linestyle": "-", "marker": "*", "linewidth": 2.4},
}


def kinds(data, dictionary):
    if data == "2-D numbers":
        return (*BRIEF, "honest, s = n/2")
    if data == theory.PATCH:
        return (*BRIEF, "plain, s = n^0.7", theory.SINGLE)
    if dictionary != DICTIONARIES[data][0]:
        return BRIEF
    single = () if dictionary == "RF" else (theory.SINGLE,)  # RF has nothing but single features
    known = [kind for kind in theory.KINDS if data not in IMAGES or kind != SMALL_OOB]
    return (*known, *single, theory.ALL)


def sizes(data, kind, quick):
    last = LAST if data == theory.PATCH and not theory.is_small(kind) else SIZES[-1]
    return [n for n in (QUICK_SIZES if quick else SIZES) if n <= last]


def repeats(data, dictionary, kind, n, quick):
    if quick:
        return QUICK_REPEATS
    claimed = kind == theory.ALL and dictionary == DICTIONARIES[data][0]
    if data in IMAGES and n > LARGE:
        return IMAGE_REPEATS[claimed]
    return REPEATS if n < LARGE or claimed else FEWER


def tasks(quick):
    tested = QUICK_TEST_SAMPLES if quick else TEST_SAMPLES
    return [
        Task(
            STUDY,
            {
                "data": data,
                "n": n,
                "classifier": f"{dictionary}: {kind}",
                "repeat": repeat,
                "test_samples": tested,
            },
            cost(data, kind, n, tested),
        )
        for data, names in DICTIONARIES.items()
        for dictionary in names
        for kind in kinds(data, dictionary)
        for n in sizes(data, kind, quick)
        for repeat in range(repeats(data, dictionary, kind, n, quick))
    ]


def cost(data, kind, n, tested):
    """Guess CPU-seconds of the fit, by the samples per tree and by all, and of the test."""
    small = theory.is_small(kind)
    trees = theory.SMALL_TREES if small else theory.TREES
    wide = {"28 x 28": 5.0, theory.PATCH: 80.0}.get(data, 1.0)
    if data == theory.PATCH:
        trees = PATCH_TREES[small]
    drawn = n**0.7 if small else n / 2 if "n/2" in kind else n
    fit = trees * (3.5e-7 * wide * drawn + 8e-8 * n)
    return round(0.05 + fit + trees * tested * 1e-7, 3)


def make(data, dictionary, kind, seed):
    regression = theory.distributions()[data].regression
    if data != theory.PATCH:
        return theory.forest(kind, theory.DICTIONARIES[dictionary], seed, regression)
    trees = PATCH_TREES[theory.is_small(kind)]
    atoms = Patch(4, 4)  # the sum that the classes differ by is among them
    return theory.forest(kind, atoms, seed, trees=trees, max_features=CANDIDATES)


def run(task):
    data, n, repeat = task.key["data"], int(task.key["n"]), int(task.key["repeat"])
    dictionary, _, kind = task.key["classifier"].partition(": ")
    model = make(data, dictionary, kind, seed=repeat)
    return theory.measure(model, data, n, repeat, int(task.key["test_samples"]))


# --- figures and tables ---------------------------------------------------------------------------


def rows(csvs):
    """Return the rows, with the dictionary and the kind of forest in columns of their own."""
    found = []
    for row in read(csvs, STUDY):
        dictionary, _, kind = row["classifier"].partition(": ")
        found.append({**row, "dictionary": dictionary, "kind": kind})
    return found


def figures(csvs, pngs):
    found = rows(csvs)
    if not found:
        return
    of_all = [row for row in found if row["dictionary"] == DICTIONARIES[row["data"]][0]]
    save(draw_kinds(of_all), Path(pngs) / "theory-rates.png")
    save(draw_dictionaries(found), Path(pngs) / "theory-dictionaries.png")
    write_whole(Path(csvs) / "theory-rates.md", table(of_all) + theory.below(of_all))
    others = [row for row in found if len(DICTIONARIES[row["data"]]) > 1 and row["kind"] in BRIEF]
    write_whole(Path(csvs) / "theory-dictionaries.md", table(others) + theory.below(others))
    write_whole(Path(csvs) / "theory-distributions.md", distribution_table())


def draw_line(axes, rows, measure, label, **look):
    """Draw means over repeats, with a band of one standard error."""
    found = [row for row in rows if row[measure] != ""]
    places, means, errors = style.curve(found, "n", measure)
    middle, spread = np.array(means), np.nan_to_num(errors)
    drawn = middle > 0  # logarithms have no place for zero
    if not drawn.any():
        return
    places, middle, spread = np.array(places)[drawn], middle[drawn], spread[drawn]
    axes.plot(places, middle, label=label, **look)
    low = np.maximum(middle - spread, middle / 3)
    axes.fill_between(places, low, middle + spread, color=look["color"], alpha=0.18, linewidth=0)


def finish(axes, sizes, lowest=0.0):
    """Make both axes logarithmic; what is below `lowest` is not shown."""
    log_x(axes, sorted(sizes), style.short, rotation=45 if len(sizes) > 5 else 0)
    log_y(axes, dense=True)
    low, high = axes.get_ylim()  # of logarithms: before, margins may reach below zero
    axes.set_ylim(bottom=max(low, lowest))
    if high < 5 * low:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)))
    axes.grid(alpha=0.25)


def draw_kinds(rows):
    data = [name for name in SHOWN if any(row["data"] == name for row in rows)]
    figure, panels = plt.subplots(
        2,
        len(data),
        figsize=(style.WIDEST * len(data) / 4, 6.6),
        layout="constrained",
        squeeze=False,
    )
    for column, name in enumerate(data):
        of_data = [row for row in rows if row["data"] == name]
        for axes, (measure, label) in zip(panels[:, column], MEASURES.items(), strict=True):
            for kind, look in LOOKS.items():
                draw_line(
                    axes, [row for row in of_data if row["kind"] == kind], measure, kind, **look
                )
            finish(axes, {row["n"] for row in of_data})
            if column == 0:
                axes.set_ylabel(label)
        title = theory.distributions()[name].title
        panels[0, column].set_title(f"{title},\n{DICTIONARIES[name][0]}", weight="bold")
        panels[1, column].set_xlabel("training samples n")
    style.legend(figure, panels.ravel()[::-1])  # the last column has all kinds
    return figure


def draw_dictionaries(rows):
    data = [name for name in SHOWN if len(DICTIONARIES[name]) > 1]
    figure, panels = plt.subplots(
        2,
        len(data),
        figsize=(style.WIDEST * len(data) / 2, 6.8),
        layout="constrained",
        squeeze=False,
    )
    for column, name in enumerate(data):
        of_data = [row for row in rows if row["data"] == name]
        for axes, (measure, label) in zip(panels[:, column], MEASURES.items(), strict=True):
            for dictionary in style.FORESTS:
                for kind, line in ((PLAIN, "--"), (HONEST, ":"), (theory.ALL, "-")):
                    found = [
                        row
                        for row in of_data
                        if (row["dictionary"], row["kind"]) == (dictionary, kind)
                    ]
                    look = {**style.CLASSIFIERS[dictionary], "linewidth": 1.6, "linestyle": line}
                    draw_line(axes, found, measure, f"{dictionary}: {kind}", **look)
            if of_data:
                finish(axes, {row["n"] for row in of_data})
            if column == 0:
                axes.set_ylabel(label)
        panels[0, column].set_title(theory.distributions()[name].title, weight="bold")
        panels[1, column].set_xlabel("training samples n")
    style.legend(figure, panels.ravel())
    return figure


def table(rows):
    """Return both measures at the largest size, and the rates at which they fall."""
    lines = []
    for (data, dictionary, kind), found in tables.group(rows, "data", "dictionary", "kind").items():
        cells = []
        for measure in MEASURES:
            places, means, _ = style.curve([r for r in found if r[measure] != ""], "n", measure)
            if not places:
                cells += ["", ""]
                continue
            last = [row[measure] for row in found if row["n"] == places[-1]]
            cells += [tables.rate_and_error(last), theory.fit_rate(places, means) or ""]
        size = max(row["n"] for row in found)
        lines.append([data, dictionary, kind, f"{size:,}", *cells])
    heads = ["data", "dictionary", "forest", "n", "L_n - L*", "rate", "mean abs(p_n - p)", "rate"]
    return tables.markdown(heads, lines)


def distribution_table():
    lines = [
        [name, " x ".join(map(str, d.shape)), d.formula, "" if d.regression else f"{d.best:.4f}"]
        for name, d in theory.distributions().items()
    ]
    return tables.markdown(["data", "features", "P(y = 1 given x), or the mean of y", "L*"], lines)
