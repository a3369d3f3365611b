"""The table of the README, from the results of a run: results/summary.md."""

from benchmarks import reports, results
from benchmarks.plan import LIGHTGBM, MORF, RF, SKLEARN_RF, TREEPLE_PATCH, XGBOOST, YDF_OBLIQUE
from measuring import tables
from measuring.files import write_whole
from measuring.tables import markdown

COLUMNS = {
    MORF: "morforest",
    RF: "morforest, `Axis()`",
    SKLEARN_RF: "scikit-learn RF",
    TREEPLE_PATCH: "treeple patch forest",
    YDF_OBLIQUE: "YDF sparse oblique",
    XGBOOST: "XGBoost",
    LIGHTGBM: "LightGBM",
}


def write(folder):
    fits = [row for row in results.read(folder / "fit.csv") if row["threads"] == 1]
    if not fits:
        return
    lines = []
    for rows in _comparable(fits):
        same = [row for row in fits if row["rows"] == rows]
        lines.append(_line(f"fit, {rows:,} images, CPU-seconds", same, "cpu_seconds", seconds))
        lines.append(_line("accuracy", same, "score", accuracy))
    used = list(fits)
    predictions = results.read(folder / "predict.csv")
    used += predictions
    for batch in dict.fromkeys(row["batch"] for row in predictions):
        if batch in (1, 10_000):
            same = [row for row in predictions if row["batch"] == batch]
            label = f"`predict_proba`, {batch:,} row{'s' if batch > 1 else ''}, CPU-ms"
            lines.append(_line(label, same, "cpu_seconds", milliseconds))
    for name, label in (("size", "saved model, MB"), ("memory", "peak memory of a fit, MB")):
        found = results.read(folder / f"{name}.csv")
        largest = max((row["rows"] for row in found), default=0)
        same = [row for row in found if row["rows"] == largest]
        used += same
        if same:
            lines.append(_line(f"{label}, {largest:,} images", same, "bytes", megabytes))
    table = markdown(["", *COLUMNS.values()], lines)
    note = f"{fits[0]['data']}, {reports.constant(fits, ('trees', 'candidates', 'patches'))}."
    text = f"{note} {results.setting(used)}\n\n{table}"
    write_whole(folder / "summary.md", text)


def _comparable(fits):
    """Return the two largest numbers of rows that peers were measured at."""
    with_peers = {row["rows"] for row in fits if row["model"] == SKLEARN_RF}
    boosted = {row["rows"] for row in fits if row["model"] == XGBOOST} & with_peers
    return sorted(boosted or with_peers)[-2:]


def _line(label, rows, column, text):
    by_model = tables.group(rows, "model")
    found = [by_model.get((model,), []) for model in COLUMNS]
    return [label, *(text(reports.median(same, column)) if same else "" for same in found)]


def seconds(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def accuracy(value):
    return f"{value:.4f}".lstrip("0")


def milliseconds(value):
    return seconds(1000 * value)


def megabytes(value):
    return f"{value / 1e6:.3g}" if value < 1e8 else f"{value / 1e6:.0f}"
