"""From the rows of a section to its Markdown table.

Reports read the CSV files alone, so they can be written again without measuring.
"""

import dataclasses
import statistics
from collections.abc import Callable

from benchmarks import plots, results
from benchmarks.plan import OURS, WEIGHTS
from measuring import tables

# The setting of a row. A table shows the columns that vary, and its note names the others.
SETTING = (
    "data",
    "threads",
    "rows",
    "features",
    "classes",
    "trees",
    "candidates",
    "patches",
    "boundary",
)


def median(rows, column):
    return statistics.median(row[column] for row in rows)


def mean(rows, column):
    return statistics.mean(row[column] for row in rows)


def varying(rows, columns=SETTING):
    return [key for key in columns if len({row[key] for row in rows}) > 1]


def constant(rows, columns=SETTING):
    """Return the setting that all rows share, in words."""
    fixed = [key for key in columns if key not in varying(rows) and rows[0][key] not in ("", 0)]
    return ", ".join(f"{key} {rows[0][key]}" for key in fixed)


def seconds(rows, column):
    """Return the median with the range, with enough digits for short times."""
    values = [row[column] for row in rows]
    return tables.median_and_range(values, 2 if median(rows, column) >= 10 else 3)


def ratios(group, own, column):
    """Return the model's median as a multiple of that of each of our models, or a dash."""
    return [_ratio(median(group, column), rows, column) for rows in own]


def _ratio(theirs, ours, column):
    return f"{theirs / median(ours, column):.2f}" if ours else "-"


def fits(rows):
    keys = varying(rows)
    own = [model for model in OURS if any(row["model"] == model for row in rows)]
    header = [*keys, "model", "repeats", "CPU s", "wall s", *(f"x {m}" for m in own), "score"]
    lines = []
    for setting, same in tables.group(rows, *keys).items():
        by_model = tables.group(same, "model")
        ours = [by_model.get((model,), []) for model in own]
        for (model,), group in by_model.items():
            lines.append(
                [
                    *setting,
                    model,
                    len(group),
                    seconds(group, "cpu_seconds"),
                    seconds(group, "wall_seconds"),
                    *ratios(group, ours, "cpu_seconds"),
                    tables.mean_and_error([row["score"] for row in group]),
                ]
            )
    return header, lines


def predictions(rows):
    header = ["batch", "model", "CPU ms", "wall ms", "rows/s", "x morforest MORF", "score"]
    lines = []
    for (batch,), same in tables.group(rows, "batch").items():
        by_model = tables.group(same, "model")
        ours = by_model.get((OURS[0],), [])
        for (model,), group in by_model.items():
            cpu, wall = median(group, "cpu_seconds"), median(group, "wall_seconds")
            ratio = _ratio(cpu, ours, "cpu_seconds")
            score = f"{mean(group, 'score'):.4f}"
            cells = [f"{1000 * cpu:.3f}", f"{1000 * wall:.3f}", f"{batch / wall:,.0f}"]
            lines.append([batch, model, *cells, ratio, score])
    return header, lines


def sizes(rows):
    header = ["rows", "model", "MB (10^6 bytes)", "x morforest MORF"]
    lines = []
    for (count,), same in tables.group(rows, "rows").items():
        by_model = tables.group(same, "model")
        ours = by_model.get((OURS[0],), [])
        for (model,), group in by_model.items():
            size = median(group, "bytes")
            lines.append([count, model, f"{size / 1e6:.2f}", _ratio(size, ours, "bytes")])
    return header, lines


def weights(rows):
    header = ["question", "model", "repeats", "CPU s", "x morforest kept", "peak MB", "score"]
    lines = []
    for (question,), same in tables.group(rows, "question").items():
        by_model = tables.group(same, "model")
        ours = by_model.get((WEIGHTS,), [])
        for (model,), group in by_model.items():
            peaks = [row["bytes"] for row in group if row["bytes"] != ""]
            lines.append(
                [
                    question,
                    model,
                    len(group),
                    seconds(group, "cpu_seconds"),
                    *ratios(group, [ours], "cpu_seconds"),
                    f"{statistics.median(peaks) / 1e6:.0f}" if peaks else "-",
                    f"{mean(group, 'score'):.4f}",
                ]
            )
    return header, lines


def imports(rows):
    header = ["statement", "repeats", "wall ms, lowest", "wall ms, median", "CPU ms, median"]
    lines = []
    for (statement,), group in tables.group(rows, "model").items():
        lowest = min(row["wall_seconds"] for row in group)
        times = (lowest, median(group, "wall_seconds"), median(group, "cpu_seconds"))
        lines.append([statement, len(group), *(f"{1000 * t:.0f}" for t in times)])
    return header, lines


def instructions(rows):
    header = ["work", "instruction set", "instructions (10^6)"]
    return header, [[r["work"], r["march"], f"{r['instructions'] / 1e6:.2f}"] for r in rows]


@dataclasses.dataclass(frozen=True)
class Report:
    title: str
    note: str
    table: Callable  # rows -> header, lines
    plot: Callable | None = None  # rows, path


REPORTS = {
    "fit": Report(
        "Growing on images",
        "MORF and treeple use patches; boosting has its defaults and one round per tree of the "
        "others. Where there are more rows than the data has, its rows are repeated.",
        fits,
        plots.sweep("rows", "training images"),
    ),
    "predict": Report(
        "predict_proba",
        "Forests are grown on images with one thread. Numbers are medians over interleaved rounds, "
        "each the median of several calls after one that is not counted. Factors compare CPU time.",
        predictions,
        plots.throughput,
    ),
    "size": Report(
        "The size of a saved model",
        "Forests are grown on images. The size is that of a pickle, protocol 5; of ydf it is that "
        "of the files that it saves.",
        sizes,
    ),
    "area": Report(
        "The cost of large patches",
        "Forests are grown on images, with patches from 2x2 to the size named.",
        fits,
        plots.sweep("side", "largest patch: side"),
    ),
    "features": Report(
        "Growing on tables: features",
        "Each node has as many candidates as the square root of the number of features.",
        fits,
        plots.sweep("features", "features"),
    ),
    "classes": Report(
        "Growing on tables: classes",
        "Each node has as many candidates as the square root of the number of features.",
        fits,
        plots.sweep("classes", "classes"),
    ),
    "large-table": Report(
        "A large table",
        "Each node has as many candidates as the square root of the number of features.",
        fits,
    ),
    "threads": Report(
        "One thread and two", "Wall-clock time beside CPU time; the two take turns.", fits
    ),
    "small": Report("Few images, many trees", "MORF and treeple use patches.", fits),
    "floats": Report(
        "Patches over floats", "All take float32 input; MORF and treeple use patches.", fits
    ),
    "regression": Report(
        "Regression",
        "Friedman's first function: five features matter, the noise has variance 1. Each node has "
        "a third of the features as candidates. The score is the coefficient of determination.",
        fits,
    ),
    "graphs": Report(
        "Graphs of features",
        "Sums over connected sets of a network with ten edges per feature (a million where there "
        "are 100,000 features), beside SPORF. All have sums of the same sizes, with random signs, "
        "over bytes. There are as many candidates as the square root of the number of features.",
        fits,
    ),
    "memory": Report(
        "Peak memory of a fit",
        "Forests are grown on images with one thread. The number is the highest resident memory "
        "during the fit less that before it, when the data was ready and the library was loaded. "
        "Each has a fresh process.",
        sizes,
    ),
    "import": Report(
        "Import", "Fresh processes take turns; the files are in the disk's cache.", imports
    ),
    "weights": Report(
        "Forest weights and quantiles",
        "Regression forests whose leaves have at least five samples answer questions about 10,000 "
        "test samples, in turns, with one thread. The fit of ours and of quantile-forest includes "
        "keeping the samples of leaves, that of scikit-learn by hand a sparse matrix of them. "
        "quantile-forest has no weights: it counts shared leaves (`proximity_counts`). Quantiles "
        "are those of levels 0.1, 0.5 and 0.9, and their score is the mean pinball loss; other "
        "scores are the coefficient of determination of the predicted means. The peak is the "
        "highest resident memory during the call less that before it, and includes the answer.",
        weights,
    ),
    "instructions": Report(
        "Instructions of the core",
        "Callgrind counts them while trees grow on fixed, generated data (instructions.cpp). The "
        "count is the same on a busy machine as on an idle one.",
        instructions,
    ),
}


def write(folder, name):
    """Write the table and the plot of a section, if it has rows."""
    rows = results.read(folder / f"{name}.csv")
    if not rows:
        return
    report = REPORTS[name]
    header, lines = report.table(rows)
    note = report.note
    if "data" in rows[0] and constant(rows):
        note += f" All rows have {constant(rows)}."
    if report.table is fits:
        note += (
            " Times are medians (lowest - highest), beside factors by which a model takes more CPU "
            "time than ours. Scores are means ± standard errors over the repeats."
        )
    picture = ""
    if report.plot:
        report.plot(rows, folder / f"{name}.png", report.title)
        picture = f"\n![{report.title}]({name}.png)\n"
    results.publish(folder / f"{name}.md", report.title, note, rows, header, lines, picture)
