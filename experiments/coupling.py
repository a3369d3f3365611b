"""Simulation D with the clue of energy taken away: can a method see how channels are coupled?

In D the input of class 1 is stronger, so that the energy of a sample, its sum of squares, tells the
classes apart. Here the input comes on one channel or on two, which differs from sample to sample,
and for each of these patterns the answer of class 1 is scaled to the energy of that of class 0.
What is left is the paper's difference: in class 1 an input reaches the other channels too.

*Known answers* is a classifier that knows everything about the system but the pattern and the onset
of a sample: it compares the likelihoods of the classes.
"""

from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from experiments import models, simulations, style
from experiments.energy import CUT, energy
from experiments.simulations import SHORT, VARIANTS
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole
from morforest.datasets import DYNAMICS_NOISE, DYNAMICS_STATE

STUDY = Path(__file__).stem
DATA = "D"
KNOWN = "known answers"
PATTERNS = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)])
INPUT = np.stack([0.5 * np.eye(3), 0.4 * np.eye(3) + 0.1])  # the paper's B, by class
# D's inputs are of strength 1. With one channel less, or two, more is needed to be seen at all.
STRENGTH = 2.0
ONSETS, DURATION, LENGTH = (20, 40), 5, 100
SIZES = (50, 100, 200, 400, 1000, 2000)
REPEATS = 5
QUICK_SIZES = (100,)
QUICK_REPEATS = 2
TEST_SAMPLES = 5000
FIRST_SEED = 30_000  # far from those of the other studies
TRAINED = ("MORF", SHORT, "SPORF", "RF", "RBF SVM", "kNN")


def tasks(quick):
    sizes = QUICK_SIZES if quick else SIZES
    repeats = range(QUICK_REPEATS if quick else REPEATS)
    untrained = [(name, 0) for name in (CUT, KNOWN)]
    return [
        Task(STUDY, {"classifier": name, "n": n, "repeat": repeat}, round(1 + n / 1000, 2))
        for name, n in (*untrained, *((name, n) for name in TRAINED for n in sizes))
        for repeat in repeats
    ]


def answers():
    """Return the mean of a sample by class, pattern and onset: (2, 6, 20, 3, 100).

    The state starts at the mean of the first states, and follows x(t + 1) = A x(t) + B u(t).
    """
    quiet = follow(np.full(3, 0.5), np.zeros((LENGTH, 3)))
    found = np.empty((len(INPUT), len(PATTERNS), ONSETS[1] - ONSETS[0], 3, LENGTH))
    for (label, i), _ in np.ndenumerate(np.empty((len(INPUT), len(PATTERNS)))):
        for place, onset in enumerate(range(*ONSETS)):
            given = np.zeros((LENGTH, 3))
            given[onset : onset + DURATION] = STRENGTH * INPUT[label] @ PATTERNS[i]
            found[label, i, place] = follow(np.zeros(3), given)
    size = (found**2).sum(axis=(3, 4), keepdims=True)
    return quiet + found * np.sqrt(size[:1] / size)


def follow(state, given):
    states = []
    for push in given:
        states.append(state)
        state = DYNAMICS_STATE @ state + push
    return np.transpose(states)


def make(n, seed):
    """Return samples of shape (n, 3, 100), and the classes 0 and 1 in turn."""
    random = np.random.RandomState(seed)
    y = np.arange(n) % 2
    pattern = random.randint(len(PATTERNS), size=n)
    onset = random.randint(ONSETS[1] - ONSETS[0], size=n)
    starts = random.uniform(size=(n, 3)) - 0.5  # around the mean of the first states
    powers = [np.eye(3)]
    for _ in range(LENGTH - 1):
        powers.append(DYNAMICS_STATE @ powers[-1])
    fading = np.einsum("tij,nj->nit", np.stack(powers), starts)
    noise = DYNAMICS_NOISE * random.standard_normal((n, 3, LENGTH))
    return answers()[y, pattern, onset] + fading + noise, y


def by_likelihood(X):
    """Return the class whose answers, of all patterns and onsets alike, explain a sample better.

    What the first state adds to its mean counts as noise, which it nearly is: it fades.
    """
    means = answers().reshape(2, -1, X[0].size)
    rows = X.reshape(len(X), -1)
    fits = [
        logsumexp((rows @ of.T - (of**2).sum(axis=1) / 2) / DYNAMICS_NOISE**2, axis=1)
        for of in means
    ]
    return np.argmax(fits, axis=0)


def run(task):
    name, n = task.key["classifier"], int(task.key["n"])
    seed = FIRST_SEED + int(task.key["repeat"])
    X_test, y_test = make(TEST_SAMPLES, 2 * seed + 1)
    if name == CUT:
        predicted = energy(X_test) > np.median(energy(X_test))
    elif name == KNOWN:
        predicted = by_likelihood(X_test)
    else:
        X, y = make(n, 2 * seed)
        ours = "MORF" if name in VARIANTS else name
        model = models.make(ours, DATA, X.shape[1:], 2, n, seed=seed, threads=1)
        for parameter, value in VARIANTS.get(name, {}).items():
            model.set_params(**{f"model__dictionary__{parameter}": value})
        predicted = model.fit(X, y).predict(X_test)
    return {"seed": seed, "error": float(np.mean(predicted != y_test))}


# --- figures and tables ---------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    trained = [row for row in rows if row["n"]]
    if not trained:
        return
    lines = []
    sizes = sorted({row["n"] for row in trained})
    found = tables.group(rows, "classifier", "n")
    for name in (CUT, KNOWN, *TRAINED):
        columns = [0] * len(sizes) if (name, 0) in found else sizes
        errors = [[row["error"] for row in found.get((name, n), [])] for n in columns]
        if any(errors):
            lines.append([name, *(tables.rate_and_error(e) if e else "" for e in errors)])
    header = ["n", *(f"{n:,}" for n in sizes)]
    write_whole(Path(csvs) / "coupling.md", tables.markdown(header, lines))
    save(draw(rows, trained), Path(pngs) / "coupling.png")


def draw(rows, trained):
    """Draw the answers of both classes to each pattern, and the errors against n."""
    figure = plt.figure(figsize=(style.WIDEST, 4.4), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=(1.2, 1))
    small = grid[0].subgridspec(2, len(PATTERNS) // 2)
    means = answers()
    axes = None
    for i, pattern in enumerate(PATTERNS):
        axes = figure.add_subplot(small[i // 3, i % 3], sharey=axes)
        for channel in range(3):
            for label, look in enumerate(({"color": "0.55"}, {"color": simulations.MEAN_COLOUR})):
                line = means[label, i, 0, channel, 15:60] - 2 * channel
                axes.plot(line, linewidth=1.4, linestyle="-" if label else "--", **look)
        channels = " and ".join(str(c + 1) for c in np.flatnonzero(pattern))
        axes.set_title(f"input on {channels}", fontsize=9)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    axes = figure.add_subplot(grid[1])
    style.draw_curves(axes, trained, "n", "error", TRAINED)
    known = [row["error"] for row in rows if row["classifier"] == KNOWN]
    if known:
        axes.axhline(np.mean(known), color="0.4", linewidth=1, linestyle=(0, (1, 1)))
        axes.text(60, np.mean(known) + 0.008, KNOWN, fontsize=8)
    axes.set(xlabel="training samples", ylabel="test error, mean ± standard error", ylim=(0, 0.55))
    style.legend(figure, [axes])
    return figure
