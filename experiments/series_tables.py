"""Tables of the study of time series and EEG, from its rows."""

import numpy as np
import realdata
import stats
from store import write_whole
from style import markdown

OURS = "MORF"
# The paper compares folds of the movement data by Cohen's kappa, those of the surgical outcome by
# AUC; these sets stand in for its private ones.
STAND_INS = {"finger": "kappa", "fragility": "auc"}
MEASURES = {"accuracy": "Accuracy", "kappa": "Cohen's kappa", "auc": "AUC"}


def by_fold(rows, measure):
    """scores[set][classifier]: an array over the folds that all classifiers of that set have.

    Columns of a set that are not complete are shortened rather than filled, so that all are means
    over the same folds.
    """
    cells = {}
    for row in rows:
        at = cells.setdefault(row["set"], {}).setdefault(row["classifier"], {})
        at[row["fold"]] = row[measure]
    scores = {}
    for name, columns in sorted(cells.items(), key=lambda item: item[0].lower()):
        common = sorted(set.intersection(*(set(folds) for folds in columns.values())))
        if common:
            scores[name] = {
                classifier: np.array([folds[i] for i in common])
                for classifier, folds in columns.items()
            }
    return scores


def complete(scores):
    """Sets, classifiers, and the matrix of their mean scores: sets that lack nobody.

    The second form of a recording is not another set.
    """
    classifiers = sorted({c for columns in scores.values() for c in columns})
    sets = [
        name
        for name, columns in scores.items()
        if len(columns) == len(classifiers) and name != realdata.CONTRAST
    ]
    means = [[scores[name][c].mean() for c in classifiers] for name in sets]
    return sets, classifiers, np.array(means).reshape(len(sets), len(classifiers))


def ordered(scores):
    """Classifiers from the best to the worst mean rank over the complete sets."""
    sets, classifiers, means = complete(scores)
    if not sets:
        return classifiers
    return [classifiers[i] for i in np.argsort(stats.ranks(means), kind="stable")]


def write(rows, path):
    """All tables of the study, as one page."""
    parts = ["# Time series and EEG", _note(rows)]
    order = ordered(by_fold(rows, "accuracy"))
    for measure, title in MEASURES.items():
        parts += [
            f"## {title}, mean ± standard deviation over folds",
            scores_table(rows, measure, order),
        ]
    parts += ["## MORF against each, over data sets (accuracy)", sets_table(rows)]
    for name, measure in STAND_INS.items():
        table = folds_table(rows, name, measure)
        if table:
            parts += [f"## MORF against each, over the folds of {name} ({measure})", table]
    parts += ["## CPU-seconds of a fit, median over folds", seconds_table(rows, order)]
    write_whole(path, "\n\n".join(part.rstrip() for part in parts) + "\n")


def _note(rows):
    sets, classifiers, means = complete(by_fold(rows, "accuracy"))
    names = {row["set"] for row in rows}
    note = (
        f"{len(rows):,} fits: {len(names)} data sets, {len(classifiers)} classifiers. Means are "
        "over the folds that all classifiers have. Fragility is scored by subject. Written from "
        "`series.csv` by `make figures`."
    )
    left_out = sorted(names - {*sets, realdata.CONTRAST})
    if left_out:
        note += (
            f" Not in the comparison over sets, for want of a classifier: {', '.join(left_out)}."
        )
    if len(sets) > 1 and len(classifiers) > 2:
        gap = stats.critical_difference(len(classifiers), len(sets))
        note += (
            f" Friedman's test that all are alike: p = {p_text(stats.friedman(means))}; "
            f"Nemenyi's critical difference of mean ranks: {gap:.2f}."
        )
    return note


def scores_table(rows, measure, order):
    scores = by_fold(rows, measure)
    lines = []
    for name, columns in scores.items():
        best = max(values.mean() for values in columns.values())
        cells = [name, len(next(iter(columns.values())))]
        for classifier in order:
            cells.append(_score(columns.get(classifier), best))
        lines.append(cells)
    _, classifiers, means = complete(scores)
    if len(means):
        at = dict(zip(classifiers, stats.ranks(means), strict=True))
        cells = ["**mean rank**", "", *(f"{at[c]:.2f}" if c in at else "" for c in order)]
        lines.append(cells)
    return markdown(["set", "folds", *order], lines)


def _score(values, best):
    if values is None:
        return ""
    mean = f"{values.mean():.3f}"
    mean = f"**{mean}**" if mean == f"{best:.3f}" else mean
    return f"{mean} ± {values.std(ddof=1):.3f}" if len(values) > 1 else mean


def sets_table(rows):
    """Wilcoxon's signed-rank test over data sets, corrected for the number of comparisons."""
    sets, classifiers, means = complete(by_fold(rows, "accuracy"))
    if OURS not in classifiers or len(classifiers) < 2 or not sets:
        return f"{OURS} has no set in common with all others yet."
    ours = means[:, classifiers.index(OURS)]
    others = [c for c in classifiers if c != OURS]
    theirs = [means[:, classifiers.index(c)] for c in others]
    p_values = [stats.signed_rank(ours, their) for their in theirs]
    lines = []
    for other, their, p, adjusted in zip(
        others, theirs, p_values, stats.holm(p_values), strict=True
    ):
        gap = ours - their
        counts = f"{np.sum(gap > 0)} / {np.sum(gap == 0)} / {np.sum(gap < 0)}"
        lines.append([other, counts, f"{np.median(gap):+.3f}", p_text(p), p_text(adjusted)])
    header = [f"{len(sets)} sets", "better / equal / worse", "median difference", "p", "p, Holm"]
    return markdown(header, lines)


def folds_table(rows, name, measure):
    """The same over folds of one set, with Cohen's d. None if the set has no folds to compare."""
    columns = by_fold(rows, measure).get(name, {})
    if OURS not in columns or len(columns) < 2 or len(columns[OURS]) < 2:
        return None
    lines = []
    for other, p, adjusted, gap, size in comparisons(columns):
        interval = "" if np.isnan(size.low) else f" [{size.low:.2f}, {size.high:.2f}]"
        d = "not defined" if np.isnan(size.d) else f"{size.d:.2f}"
        lines.append([other, f"{gap:+.3f}", p_text(p), p_text(adjusted), d + interval])
    folds = f"{len(columns[OURS])} folds"
    return markdown([folds, "median difference", "p", "p, Holm", "Cohen's d [95 %]"], lines)


def comparisons(columns):
    """For each other classifier: its name, p, Holm's p, median difference, Cohen's d."""
    others = sorted(c for c in columns if c != OURS)
    ours = columns[OURS]
    p_values = [stats.signed_rank(ours, columns[c]) for c in others]
    gaps = [float(np.median(ours - columns[c])) for c in others]
    effects = [stats.effect(ours, columns[c]) for c in others]
    return list(zip(others, p_values, stats.holm(p_values), gaps, effects, strict=True))


def seconds_table(rows, order):
    scores = by_fold(rows, "train_seconds")
    lines = [
        [name, *(f"{np.median(columns[c]):.2f}" if c in columns else "" for c in order)]
        for name, columns in scores.items()
    ]
    return markdown(["set", *order], lines)


def p_text(p):
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}"
