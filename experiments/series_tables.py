"""Tables of the study of time series and EEG, from its rows."""

import numpy as np

from experiments import realdata, stats
from measuring.files import write_whole
from measuring.tables import markdown

OURS = "MORF"
# The paper compares folds of the movement data by Cohen's kappa, and those of the surgical outcome
# by AUC. These sets stand in for its private ones.
STAND_INS = {"finger": "kappa", "fragility": "auc"}
MEASURES = ("accuracy", "kappa", "auc")
SHORT = {"kappa": "kappa", "auc": "AUC"}


def by_fold(rows, measure):
    """Return scores[set][classifier], an array over the folds that all classifiers of the set have.

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
    """Return sets with all classifiers, the classifiers, and the matrix of their mean scores.

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
    """Return classifiers from the best to the worst mean rank over the complete sets."""
    sets, classifiers, means = complete(scores)
    if not sets:
        return classifiers
    return [classifiers[i] for i in np.argsort(stats.ranks(means), kind="stable")]


def write(rows, folder):
    """Write every table to its own file, series-NAME.md; docs/paper-series.md shows them."""
    order = ordered(by_fold(rows, "accuracy"))
    pages = {
        "summary": summary(rows),
        **{measure: scores_table(rows, measure, order) for measure in MEASURES},
        "sets": sets_table(rows),
        **{name: folds_table(rows, name, measure) for name, measure in STAND_INS.items()},
        "seconds": seconds_table(rows, order),
    }
    for name, text in pages.items():
        write_whole(folder / f"series-{name}.md", text.rstrip() + "\n")


def summary(rows):
    """Return what the tables and tests say, in sentences."""
    scores = by_fold(rows, "accuracy")
    sets, classifiers, means = complete(scores)
    parts = [f"{len(rows):,} fits of {len(classifiers)} classifiers on {len(scores)} data sets."]
    left_out = sorted({row["set"] for row in rows} - {*sets, realdata.CONTRAST})
    if left_out:
        parts.append(
            f"Not compared over sets, because a classifier is missing: {', '.join(left_out)}."
        )
    if len(sets) > 1 and len(classifiers) > 2:
        gap = stats.critical_difference(len(classifiers), len(sets))
        parts.append(
            f"Friedman's test that all are alike over {len(sets)} sets: "
            f"p = {p_text(stats.friedman(means))}; Nemenyi's critical difference of mean ranks: "
            f"{gap:.2f}."
        )
    if sets and OURS in classifiers:
        places = dict(zip(classifiers, stats.ranks(means), strict=True))
        at = sorted(places.values()).index(places[OURS]) + 1
        parts.append(
            f"{OURS} has the mean rank {places[OURS]:.2f}, place {at} of {len(classifiers)}; "
            + verdicts([(other, p, gap) for other, _, p, gap in over_sets(rows)])
        )
    for name, measure in STAND_INS.items():
        columns = by_fold(rows, measure).get(name, {})
        if OURS in columns and len(columns[OURS]) > 1:
            values = columns[OURS]
            parts.append(
                f"On {name} {OURS} has {SHORT[measure]} {values.mean():.3f} ± "
                f"{values.std(ddof=1):.3f} over {len(values)} folds; "
                + verdicts([(other, p, gap) for other, _, p, gap, _ in over_folds(columns)])
            )
    return "\n".join(f"- {part}" for part in parts)


def verdicts(comparisons):
    """Say who differs after the correction, from (name, p, median difference)."""
    better = [name for name, p, gap in comparisons if p <= stats.LEVEL and gap > 0]
    worse = [name for name, p, gap in comparisons if p <= stats.LEVEL and gap < 0]
    return (
        f"after Holm's correction better than {_list(better)}, worse than {_list(worse)}, "
        f"undecided against {len(comparisons) - len(better) - len(worse)}."
    )


def _list(names):
    return ", ".join(names) if names else "none"


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
    """Return a table of signed-rank tests over data sets, corrected for their number."""
    sets, classifiers, means = complete(by_fold(rows, "accuracy"))
    if not over_sets(rows):
        return f"{OURS} has no set in common with all others yet."
    lines = []
    for other, p, adjusted, gap in over_sets(rows):
        gaps = means[:, classifiers.index(OURS)] - means[:, classifiers.index(other)]
        counts = f"{np.sum(gaps > 0)} / {np.sum(gaps == 0)} / {np.sum(gaps < 0)}"
        lines.append([other, counts, f"{gap:+.3f}", p_text(p), p_text(adjusted)])
    header = [f"over {len(sets)} sets, against", "better / equal / worse", "median difference"]
    return markdown([*header, "p", "p, Holm"], lines)


def over_sets(rows):
    """Return for each other classifier its name, p, Holm's p and median difference of accuracy."""
    sets, classifiers, means = complete(by_fold(rows, "accuracy"))
    if OURS not in classifiers or not sets:
        return []
    return compare(dict(zip(classifiers, means.T, strict=True)))


def folds_table(rows, name, measure):
    """Return the same table over the folds of one set, with Cohen's d."""
    columns = by_fold(rows, measure).get(name, {})
    if OURS not in columns or len(columns) < 2 or len(columns[OURS]) < 2:
        return f"{name} has no two folds to compare yet."
    lines = []
    for other, p, adjusted, gap, size in over_folds(columns):
        interval = "" if np.isnan(size.low) else f" [{size.low:.2f}, {size.high:.2f}]"
        d = "not defined" if np.isnan(size.d) else f"{size.d:.2f}"
        lines.append([other, f"{gap:+.3f}", p_text(p), p_text(adjusted), d + interval])
    header = [f"over {len(columns[OURS])} folds, against", f"median difference of {SHORT[measure]}"]
    return markdown([*header, "p", "p, Holm", "Cohen's d [95 %]"], lines)


def over_folds(columns):
    """Return for each other classifier its name, p, Holm's p, median difference, Cohen's d."""
    return [
        (other, *rest, stats.effect(columns[OURS], columns[other]))
        for other, *rest in compare(columns)
    ]


def compare(columns):
    """Compare MORF with each other column: its name, p, Holm's p, median difference."""
    others = sorted(c for c in columns if c != OURS)
    p_values = [stats.signed_rank(columns[OURS], columns[c]) for c in others]
    gaps = [float(np.median(columns[OURS] - columns[c])) for c in others]
    return list(zip(others, p_values, stats.holm(p_values), gaps, strict=True))


def seconds_table(rows, order):
    scores = by_fold(rows, "train_seconds")
    lines = [
        [name, *(f"{np.median(columns[c]):.2f}" if c in columns else "" for c in order)]
        for name, columns in scores.items()
    ]
    return markdown(["set", *order], lines)


def p_text(p):
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}"
