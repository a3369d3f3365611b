"""What morforest should reach beside its peers, and whether it does.

A target compares one of our models with one of a peer, measured in turns in the same section of
the same run, at the largest number of rows that both were measured at.
"""

import dataclasses
import math
import statistics

from benchmarks import data, plots, reports, results
from benchmarks.plan import (
    LIGHTGBM,
    MORF,
    QUANTILE_FOREST,
    RF,
    SKLEARN_RF,
    SPORF,
    TREEPLE_OBLIQUE,
    TREEPLE_PATCH,
    WEIGHTS,
    XGBOOST,
    YDF_OBLIQUE,
)
from measuring import tables


@dataclasses.dataclass(frozen=True)
class Target:
    """`required` times ours is the least that the peer must take, or the most that we may."""

    work: str
    section: str
    ours: str
    peer: str
    required: float
    column: str = "cpu_seconds"
    unit: str = "s"
    at_most: bool = False  # ours / theirs must be at most this; else theirs / ours at least
    where: tuple = ()  # (column, value) pairs that the rows must have
    scored: bool = True  # ours must not score lower than noise explains


def fit(work, section, ours, peer, required, **options):
    where = (("threads", 1), *options.pop("where", ()))
    return Target(work, section, ours, peer, required, where=where, **options)


def predict(batch, peer, required):
    work = f"predict_proba, {batch:,} row{'s' if batch > 1 else ''}"
    return Target(
        work, "predict", MORF, peer, required, unit="ms", where=(("batch", batch),), scored=False
    )


def answer(work, question, required):
    where = (("question", question),)
    return Target(work, "weights", WEIGHTS, QUANTILE_FOREST, required, where=where, scored=False)


TARGETS = (
    fit("MORF, images", "fit", MORF, TREEPLE_PATCH, 20),
    fit("MORF, images", "fit", MORF, SKLEARN_RF, 5),
    fit("MORF, images", "fit", MORF, YDF_OBLIQUE, 13),
    fit("MORF, images", "fit", MORF, XGBOOST, 40),
    fit("MORF, images", "fit", MORF, LIGHTGBM, 15),
    fit("MORF, patches to 14x14", "area", MORF, TREEPLE_PATCH, 50, where=(("side", 14),)),
    fit("RF, images", "fit", RF, SKLEARN_RF, 5),
    fit("SPORF, large table", "large-table", SPORF, TREEPLE_OBLIQUE, 10),
    fit("SPORF, large table", "large-table", SPORF, YDF_OBLIQUE, 5),
    fit("MORF, 500 images", "small", MORF, TREEPLE_PATCH, 20),
    fit("MORF, impulse", "floats", MORF, TREEPLE_PATCH, 15, where=(("kind", "impulse"),)),
    fit("MORF, 28 x 50 channels", "floats", MORF, TREEPLE_PATCH, 15, where=(("kind", "eeg"),)),
    fit("MORF, 1 x 4000 series", "floats", MORF, TREEPLE_PATCH, 15, where=(("kind", "series"),)),
    fit("RF, regression", "regression", RF, SKLEARN_RF, 4),
    predict(10_000, SKLEARN_RF, 4),
    predict(10_000, YDF_OBLIQUE, 5),
    predict(1, SKLEARN_RF, 15),
    answer("forest weights, 10,000 rows", "weights", 3),
    answer("quantiles, 10,000 rows", "quantiles", 3),
    Target(
        "peak memory of a fit",
        "memory",
        MORF,
        SKLEARN_RF,
        0.7,
        column="bytes",
        unit="MB",
        at_most=True,
    ),
    Target(
        "saved model", "size", MORF, SKLEARN_RF, 0.25, "bytes", "MB", at_most=True, scored=False
    ),
    Target(
        "saved model", "size", MORF, YDF_OBLIQUE, 1.0, "bytes", "MB", at_most=True, scored=False
    ),
)
THREADS_REQUIRED = 1.8  # times faster with two
IMPORT_REQUIRED = 0.1  # seconds above scikit-learn's
SCALES = {"s": 1, "ms": 1e3, "MB": 1e-6}
HEADER = (
    "work",
    "training rows",
    "peer",
    "ours",
    "theirs",
    "ratio",
    "required",
    "our score",
    "their score",
    "holds",
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A target and what was found."""

    work: str
    data: str
    rows: int
    peer: str
    unit: str
    ours: float
    theirs: float
    ratio: float
    required: float
    at_most: bool
    our_score: float | None = None
    their_score: float | None = None

    @property
    def met(self):
        return self.ratio <= self.required if self.at_most else self.ratio >= self.required

    @property
    def score_noise(self):
        """Return the standard error of such a share among the test rows."""
        share = min(max(self.their_score, 0.0), 1.0)
        return math.sqrt(share * (1 - share) / data.TEST_ROWS)

    @property
    def reached(self):
        """Return the share of the required ratio; where less is better, at most ten."""
        if self.at_most:
            return self.required / max(self.ratio, self.required / 10)
        return self.ratio / self.required

    @property
    def verdict(self):
        missed = []
        if not self.met:
            missed.append("ratio")
        if self.our_score is not None and self.our_score < self.their_score - self.score_noise:
            missed.append("score")
        return f"no: {' and '.join(missed)}" if missed else "yes"

    def bar(self):
        sign = "≤" if self.at_most else "≥"
        text = f"{self.ratio:.3g} ({sign} {self.required:g})"
        return f"{self.work} | {self.peer}", self.reached, self.verdict == "yes", text

    def line(self):
        digits = 1 if self.unit == "MB" else 3
        scores = ["-" if s is None else f"{s:.4f}" for s in (self.our_score, self.their_score)]
        return [
            self.work,
            f"{self.rows:,}" if self.rows else "-",
            self.peer,
            f"{self.ours:.{digits}f} {self.unit}",
            f"{self.theirs:.{digits}f} {self.unit}",
            f"{self.ratio:.2f}",
            f"{'<=' if self.at_most else '>='} {self.required:g}",
            *scores,
            self.verdict,
        ]


def evaluate(folder):
    """Return the outcomes of all targets whose sections were measured."""
    found = [outcome for target in TARGETS if (outcome := _outcome(target, folder))]
    return found + _threads(folder) + _import(folder)


def _rows(folder, section):
    rows = results.read(folder / f"{section}.csv")
    for row in rows:
        row["kind"] = str(row["data"]).split("-")[0]
        if row["patches"]:
            row["side"] = plots.position(row, "side")
    return rows


def _outcome(target, folder):
    rows = [
        row
        for row in _rows(folder, target.section)
        if all(row.get(key) == value for key, value in target.where)
    ]
    ours = tables.group((r for r in rows if r["model"] == target.ours), "rows")
    theirs = tables.group((r for r in rows if r["model"] == target.peer), "rows")
    if not ours.keys() & theirs.keys():
        return None
    largest = max(ours.keys() & theirs.keys())
    a, b = ours[largest], theirs[largest]
    mine, other = reports.median(a, target.column), reports.median(b, target.column)
    if mine <= 0 or other <= 0:  # too little memory to be measured
        return None
    scores = (reports.mean(a, "score"), reports.mean(b, "score")) if target.scored else ()
    scale = SCALES[target.unit]
    return Outcome(
        target.work,
        a[0]["data"],
        largest[0],
        target.peer,
        target.unit,
        mine * scale,
        other * scale,
        mine / other if target.at_most else other / mine,
        target.required,
        target.at_most,
        *scores,
    )


def _threads(folder):
    rows = [row for row in _rows(folder, "threads") if row["model"] == MORF]
    one, two = (
        tables.group((r for r in rows if r["threads"] == threads), "rows") for threads in (1, 2)
    )
    if not one.keys() & two.keys():
        return []
    largest = max(one.keys() & two.keys())
    seconds = [reports.median(group[largest], "wall_seconds") for group in (two, one)]
    name = "MORF, two threads (wall clock)"
    data, peer = rows[0]["data"], "itself with one thread"
    ratio = seconds[1] / seconds[0]
    return [Outcome(name, data, largest[0], peer, "s", *seconds, ratio, THREADS_REQUIRED, False)]


def _import(folder):
    by_module = tables.group(results.read(folder / "import.csv"), "model")
    if len(by_module) < 2:
        return []
    theirs, ours = (
        statistics.median(row["wall_seconds"] for row in rows) for rows in by_module.values()
    )
    peer = "import sklearn.ensemble"
    name = "import: seconds more"
    return [Outcome(name, "", 0, peer, "s", ours, theirs, ours - theirs, IMPORT_REQUIRED, True)]


def write(folder, full):
    """Write the table of targets, also as CSV and as a picture."""
    outcomes = evaluate(folder)
    if not outcomes:
        return
    used = dict.fromkeys((*(target.section for target in TARGETS), "import"))
    rows = [row for name in used for row in results.read(folder / f"{name}.csv")]
    note = (
        "Each line compares medians of one section of one run. Ratios are theirs / ours and should "
        "be at least as required; with <= they are ours / theirs and should be at most so. A "
        "target holds if its ratio does and our score is not lower by more than the standard error "
        "of a score over the test rows. " + _data_note(outcomes)
    )
    if not full:
        note += " This was a quick run, and the requirements are meant for the sizes of a full one."
    lines = [outcome.line() for outcome in outcomes]
    picture = "\n![Targets](targets.png)\n"
    results.publish(folder / "targets.md", "Targets", note, rows, HEADER, lines, picture)
    sheet = results.Sheet(folder, "targets", results.facts_of(rows[0]))
    for outcome in outcomes:
        sheet.add(**dataclasses.asdict(outcome), holds=outcome.verdict)
    plots.targets([outcome.bar() for outcome in outcomes], folder / "targets.png")


def _data_note(outcomes):
    names = dict.fromkeys(outcome.data for outcome in outcomes if outcome.data)
    return f"Data: {', '.join(names)}."
