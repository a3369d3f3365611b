"""Tables and the figure of the study `eeg`: scores, times, differences to peers, and targets."""

import numpy as np

from experiments import beyond, eeg_models, style, verdicts
from experiments.claims import NO, YES
from experiments.store import origin
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole

NOT_MEASURED = "not measured"
TANGENTS = (eeg_models.TANGENT, eeg_models.TANGENT_EVOKED)
# The field's methods; of each, the better one of a set counts. The network is judged by its mean.
FAMILIES = {
    "sLDA": (eeg_models.SLDA,),
    "Xdawn or CSP": (eeg_models.XDAWN, eeg_models.CSP),
    "tangent space": TANGENTS,
}
FIELD = tuple(name for names in FAMILIES.values() for name in names)
DEFAULT = "ridge eeg"  # the estimator that the targets are about
BEHIND = 0.03  # at most, on any set
FINGER_AUC = 0.88
TIMES = 5  # the CPU time of the tangent space
ONE_TRIAL = 2.0  # milliseconds
MAIN_COLUMN = "mean of {}"


def write(rows, sets, main, csvs, pngs):
    """Write everything; `sets` are in the order of the columns, and means are over `main`."""
    table = Scores(rows, sets, main)
    for name, text in {
        "eeg-scores": f"{table.scores()}\n{facts(rows)}\n",
        "eeg-seconds": table.costs("train_seconds", "{:.2f}".format),
        "eeg-one-trial": table.costs("trial_ms", "{:.2f}".format),
        "eeg-differences": table.differences(),
        "eeg-targets": table.targets(),
        "eeg-best": table.strongest(),
    }.items():
        write_whole(csvs / f"{name}.md", text)
    save(draw(table), pngs / "eeg-scores.png")


def facts(rows):
    """Return what the rows say of their run."""
    return f"Means of folds with 95 % intervals of Student's t. {origin(rows)}"


class Scores:
    """The scores by set and classifier, fold by fold."""

    def __init__(self, rows, sets, main):
        self.rows = rows
        present = {row["set"] for row in rows}
        self.sets = {name: about for name, about in sets.items() if name in present}
        self.main = tuple(name for name in main if name in present)
        self.whole = len(self.main) == len(main)
        names = dict.fromkeys(row["classifier"] for row in rows)
        ours = sorted(name for name in names if beyond.ours(name))
        self.ours = tuple(ours)
        self.peers = tuple(name for name in eeg_models.PEERS if name in names)
        self.cells = tables.group(rows, "set", "classifier")

    def of(self, data, classifier, column="score"):
        """Return values by fold; none where the classifier was not measured."""
        return {row["fold"]: row[column] for row in self.cells.get((data, classifier), [])}

    def mean(self, data, classifier, column="score"):
        values = self.of(data, classifier, column)
        return float(np.mean(list(values.values()))) if values else None

    def overall(self, *classifiers):
        """Return the mean score over the sets, of the best of several; None if one is missing."""
        best = [self.best(data, classifiers) for data in self.main]
        if not self.whole or None in best:
            return None
        return float(np.mean([self.mean(*place) for place in zip(self.main, best, strict=True)]))

    def best(self, data, classifiers):
        """Return the classifier of the highest mean score over all folds, or None."""
        folds = max(len(rows) for (name, _), rows in self.cells.items() if name == data)
        known = [name for name in classifiers if len(self.of(data, name)) == folds]
        return max(known, key=lambda name: self.mean(data, name), default=None)

    # --- tables -----------------------------------------------------------------------------------

    def header(self):
        titles = [f"{about.title}, {about.score}" for about in self.sets.values()]
        return ["", *titles, MAIN_COLUMN.format(len(self.main))]

    def scores(self):
        """Return scores of classifiers by sets, the highest of each column in bold."""
        names = (*self.peers, *self.ours)
        highest = {data: self.best(data, names) for data in self.sets}
        overall = {name: self.overall(name) for name in names}
        top = max((value for value in overall.values() if value is not None), default=None)
        lines = []
        for name in names:
            texts = [bold(self.text(data, name), name == highest[data]) for data in self.sets]
            mean = overall[name]
            texts.append("" if mean is None else bold(rate(mean), mean == top))
            lines.append([name, *texts])
        return tables.markdown(self.header(), lines)

    def text(self, data, name):
        values = list(self.of(data, name).values())
        if not values:
            return ""
        half = verdicts.difference(values, np.zeros(len(values))).half
        return rate(np.mean(values)) + ("" if np.isnan(half) else f" ± {rate(half)}")

    def costs(self, column, text):
        """Return the mean of a cost over folds."""
        lines = []
        for name in (*self.peers, *self.ours):
            values = [self.mean(data, name, column) for data in self.sets]
            lines.append([name, *("" if value is None else text(value) for value in values)])
        return tables.markdown(self.header()[:-1], lines)

    def differences(self):
        """Compare each of ours with the strongest peer of each set, fold by fold."""
        lines = []
        for data, about in self.sets.items():
            peer = self.best(data, self.peers)
            if peer is None:
                continue
            theirs = self.of(data, peer)
            for name in self.ours:
                ours = self.of(data, name)
                shared = sorted(ours.keys() & theirs.keys())
                if shared:
                    pair = [[values[i] for i in shared] for values in (ours, theirs)]
                    found = verdicts.difference(*pair)
                    means = [rate(np.mean(part)) for part in pair]
                    lines.append([about.title, name, means[0], peer, means[1], found.text()])
        header = ["set", "of ours", "", "strongest peer", "", "difference, points"]
        return tables.markdown(header, lines)

    def strongest(self):
        """Return, set by set, the strongest peer beside our default, and the best of our others."""
        others = [name for name in self.ours if name != DEFAULT]
        lines = []
        for data, about in self.sets.items():
            names = (
                self.best(data, self.peers),
                self.best(data, [DEFAULT]),
                self.best(data, others),
            )
            texts = [name and f"{self.text(data, name)} ({name})" for name in names]
            texts[1] = texts[1] and self.text(data, DEFAULT)
            lines.append([f"{about.title}, {about.score}", *(text or "" for text in texts)])
        header = ["", "strongest peer", f"our default, *{DEFAULT}*", "best of our others"]
        return tables.markdown(header, lines)

    # --- targets ----------------------------------------------------------------------------------

    def targets(self):
        """Say which targets the default estimator meets."""
        means = {name: self.overall(*members) for name, members in FAMILIES.items()}
        means = {name: value for name, value in means.items() if value is not None}
        first = max(means, key=means.get, default=", ".join(FAMILIES))
        return tables.markdown(
            ["target", "needed", "found", "met"],
            [
                self.least(
                    f"mean of all sets: at least the best of the field ({first})",
                    means.get(first),
                    self.overall(DEFAULT),
                ),
                self.least(
                    "mean of all sets: at least EEGNet's",
                    self.overall(eeg_models.EEGNET),
                    self.overall(DEFAULT),
                ),
                self.nowhere_behind(),
                *(
                    self.least(
                        f"SSVEP, 40 classes: accuracy of {name}",
                        self.mean("ssvep", name),
                        self.mean("ssvep", DEFAULT),
                    )
                    for name in (eeg_models.TRCA_PLAIN, eeg_models.TRCA)
                ),
                self.least("finger movement: AUC", FINGER_AUC, self.mean("finger", DEFAULT)),
                *self.cheap(),
            ],
        )

    def least(self, title, needed, found):
        if needed is None or found is None:
            return [title, "" if needed is None else rate(needed), NOT_MEASURED, ""]
        return [title, rate(needed), rate(found), YES if found >= needed else NO]

    def nowhere_behind(self):
        """Compare with the best of the field on every set, which favours the field."""
        title = "every set: behind the best of sLDA, Xdawn, CSP and tangent space by at most"
        gaps = {
            data: self.mean(data, DEFAULT) - self.mean(data, self.best(data, FIELD))
            for data in self.main
            if self.of(data, DEFAULT) and self.best(data, FIELD)
        }
        if not gaps or len(gaps) < len(self.main):
            return [title, rate(BEHIND), NOT_MEASURED, ""]
        worst = min(gaps, key=gaps.get)
        met = gaps[worst] >= -BEHIND
        return [title, rate(BEHIND), f"{gaps[worst]:+.3f} ({worst})", YES if met else NO]

    def cheap(self):
        """Compare times: of the fit with the slower tangent space of each set, and of one trial."""
        ratios = {}
        for data in self.main:
            peers = [self.mean(data, name, "train_seconds") for name in TANGENTS]
            ours = self.mean(data, DEFAULT, "train_seconds")
            if ours is not None and any(peers):
                ratios[data] = ours / max(filter(None, peers))
        trials = {data: self.mean(data, DEFAULT, "trial_ms") for data in self.main}
        trials = {data: value for data, value in trials.items() if value is not None}
        return [
            at_most("fit: CPU time in tangent spaces", TIMES, ratios, "{:.1f}"),
            at_most("predict one trial: milliseconds", ONE_TRIAL, trials, "{:.2f}"),
        ]


def at_most(title, limit, values, text):
    if not values:
        return [title, f"{limit:g} at most", NOT_MEASURED, ""]
    worst = max(values, key=values.get)
    found = f"{text.format(np.median(list(values.values())))} at the median of sets"
    found += f", {text.format(values[worst])} at most ({worst})"
    return [title, f"{limit:g} at most", found, YES if values[worst] <= limit else NO]


def rate(value):
    return f"{value:.3f}".replace("0.", ".", 1)


def bold(text, yes):
    return f"**{text}**" if yes and text else text


# --- figure ---------------------------------------------------------------------------------------


def draw(table):
    """Draw a row of points per set: the mean scores of all classifiers, ours larger."""
    names = (*table.peers, *table.ours)
    figure, axes = plt.subplots(figsize=(7.5, 0.6 * len(table.sets) + 2.2), layout="constrained")
    for number, name in enumerate(names):
        lower = 0.7 * (number / max(len(names) - 1, 1) - 0.5)
        places = [i + lower for i, data in enumerate(table.sets) if table.of(data, name)]
        means = [table.mean(data, name) for data in table.sets if table.of(data, name)]
        look = style.CLASSIFIERS[name]
        axes.plot(
            means,
            places,
            label=name,
            color=look["color"],
            marker=look["marker"],
            linestyle="",
            markersize=8 if beyond.ours(name) else 5,
        )
    axes.set_yticks(range(len(table.sets)), [about.title for about in table.sets.values()])
    for boundary in range(len(table.sets) - 1):
        axes.axhline(boundary + 0.5, color="0.85", linewidth=1)
    axes.invert_yaxis()
    axes.set(xlabel="AUC, or accuracy of several classes; mean of folds")
    axes.grid(alpha=0.25, axis="x")
    style.legend(figure, [axes])
    return figure
