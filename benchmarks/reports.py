"""From the rows of a section to its Markdown table.

Reports read the CSV files alone, so they can be written again without measuring.
"""

import dataclasses
import statistics
from collections.abc import Callable

from benchmarks import plots, results
from benchmarks.plan import OURS
from measuring import tables

# What a row was measured on; a table shows those that vary, its note names the others.
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
    """In words: the setting that all rows share."""
    fixed = [key for key in columns if key not in varying(rows) and rows[0][key] not in ("", 0)]
    return ", ".join(f"{key} {rows[0][key]}" for key in fixed)


def seconds(rows, column):
    """Median with range, with digits enough for short times."""
    values = [row[column] for row in rows]
    return tables.median_and_range(values, 2 if median(rows, column) >= 10 else 3)


def ratios(group, own, column):
    """Cells: the model's median as a multiple of each of ours; a dash where there is none."""
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
        "Patches for MORF and treeple; boosting with its defaults, a round for each tree. More "
        "rows than the data has are tiles of it.",
        fits,
        plots.sweep("rows", "training images"),
    ),
    "predict": Report(
        "predict_proba",
        "Forests grown on images, one thread. Medians over interleaved rounds, each the median of "
        "several calls after one that is not counted. Factors compare CPU time.",
        predictions,
        plots.throughput,
    ),
    "size": Report(
        "The size of a saved model",
        "Forests grown on images. Bytes of a pickle, protocol 5; ydf: of the files that it saves.",
        sizes,
    ),
    "area": Report(
        "The cost of large patches",
        "Images, patches from 2x2 to the size named.",
        fits,
        plots.sweep("side", "largest patch: side"),
    ),
    "features": Report(
        "Growing on tables: features",
        "The square root of the number of features are candidates at a node.",
        fits,
        plots.sweep("features", "features"),
    ),
    "classes": Report(
        "Growing on tables: classes",
        "The square root of the number of features are candidates at a node.",
        fits,
        plots.sweep("classes", "classes"),
    ),
    "large-table": Report(
        "A large table",
        "The square root of the number of features are candidates at a node.",
        fits,
    ),
    "threads": Report(
        "One thread and two", "Wall clock beside CPU time; the two take turns.", fits
    ),
    "small": Report("Few images, many trees", "Patches for MORF and treeple.", fits),
    "floats": Report(
        "Patches over floats", "float32 input for all; patches for MORF and treeple.", fits
    ),
    "regression": Report(
        "Regression",
        "Friedman's first function: five features matter, the noise has variance 1. A third of "
        "the features are candidates at a node. The score is the coefficient of determination.",
        fits,
    ),
    "memory": Report(
        "Peak memory of a fit",
        "Growing forests on images, one thread: the highest resident memory during the fit less "
        "that before it, when the data lay ready and the library was loaded. A fresh process each.",
        sizes,
    ),
    "import": Report("Import", "Fresh processes in turn, files in the disk's cache.", imports),
    "instructions": Report(
        "Instructions of the core",
        "Counted by callgrind while trees grow on fixed, generated data (instructions.cpp). The "
        "same count comes out on a busy machine as on an idle one.",
        instructions,
    ),
}


def write(folder, name):
    """The table and the plot of a section, if it has rows."""
    rows = results.read(folder / f"{name}.csv")
    if not rows:
        return
    report = REPORTS[name]
    header, lines = report.table(rows)
    note = report.note
    if "data" in rows[0] and constant(rows):
        note += f" Everywhere: {constant(rows)}."
    if report.table is fits:
        note += (
            " Medians (lowest - highest), with factors by which a model takes more CPU time than "
            "ours; scores: mean ± standard error over the repeats."
        )
    picture = ""
    if report.plot:
        report.plot(rows, folder / f"{name}.png", report.title)
        picture = f"\n![{report.title}]({name}.png)\n"
    results.publish(folder / f"{name}.md", report.title, note, rows, header, lines, picture)
