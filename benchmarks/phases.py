"""Where the time of growing goes, and how far projection is from what the machine can do.

    python -m benchmarks.phases [--mnist mnist.npz | --stand-in] [--trees 10] [--repeats 5]

Compiles phases.cpp (g++ or CXX, about a minute) and grows trees on the training images in one
thread. Needs an x86-64 processor with AVX2. Each piece of time is the least of the repeats.
"""

import argparse
import csv
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import data, native
from benchmarks.results import FOLDER, Sheet, run_facts
from measuring import arrays
from measuring.files import write_whole
from measuring.tables import markdown

MARCH = "x86-64-v3"
WORKS = {
    "narrow-patches": "MORF, patches of 2 x 2 to 2 x 5, raw bytes",
    "wide-patches": "MORF, patches of 2 x 2 to 14 x 14, 16-bit prefix sums",
    "axis": "RF, 8-bit cells",
}
PARTS = ("project_s", "draw_s", "rest_s")
NOTE = """\
One thread, 28 candidates a node, bootstrap, trees grown until their leaves are pure; bags and keys
are those that the library makes of seed 0, so the trees are its own. Each is grown several times,
and each piece of its time is the least of them. *Projection* is clocked around each call; *drawing*
is as many atoms drawn once more, apart; *the rest* is what remains: the search for the split,
parting the rows, reading leaves.

What the machine can do, measured in the same run:

- *traffic*: reading every row that growing visits, at the pace of reading the table once from end
  to end. Growing pays less where a node's rows are still in a cache, and more where they lie apart.
- *arithmetic*: the values that growing computes, at the pace of the same kernel on a few rows that
  stay in the second-level cache.

Times are milliseconds a tree, but for the table's."""


def measure(program, work, file, rows, options):
    command = [program, work, file, rows, options.trees, options.repeats]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{work}: phases.cpp failed:\n{done.stderr}")
    for row in csv.DictReader(done.stdout.splitlines()):
        yield {name: float(x) if "." in x else int(x) for name, x in row.items()}


def total(rows, name):
    return sum(row[name] for row in rows)


def summary_line(work, rows):
    first = rows[0]
    a_tree = 1e3 / first["trees"]
    project, draw, rest = (total(rows, part) * a_tree for part in PARTS)
    rounds = total(rows, "row_visits") / first["rows"]  # through the whole table
    traffic = rounds * first["stream_s"] * a_tree
    arithmetic = total(rows, "values") * first["warm_ns"] * 1e-9 * a_tree
    everything = project + draw + rest
    return [
        WORKS[work],
        f"{first['table_s']:.3f} s",
        f"{everything:.1f}",
        *(f"{part:.1f} ({part / everything:.0%})" for part in (project, draw, rest)),
        f"{rounds / first['trees']:.1f}",
        f"{first['rows'] * first['row_bytes'] / first['stream_s'] / 1e9:.1f}",
        f"{traffic:.1f}",
        f"{arithmetic:.1f}",
        f"{project / traffic:.2f}",
        f"{project / arithmetic:.2f}",
    ]


SUMMARY = (
    "work",
    "table",
    "a tree",
    "projection",
    "drawing",
    "the rest",
    "rows visited / rows of the table",
    "streaming GB/s",
    "traffic",
    "arithmetic",
    "projection / traffic",
    "projection / arithmetic",
)


def size_lines(rows):
    everything = sum(total(rows, part) for part in PARTS)
    for row in rows:
        here = sum(row[part] for part in PARTS)
        traffic = row["row_visits"] / row["rows"] * row["stream_s"]
        a_value = 1e9 / row["values"]
        yield [
            f"{row['smallest_node']:,} - {2 * row['smallest_node'] - 1:,}",
            f"{row['calls'] / row['trees']:.1f}",
            f"{row['row_visits'] / row['trees']:,.0f}",
            *(f"{row[part] * a_value:.2f}" for part in PARTS),
            f"{row['project_s'] / traffic:.2f}",
            f"{row['project_s'] * a_value / row['warm_ns']:.2f}",
            f"{here / everything:.1%}",
        ]


SIZES = (
    "rows of the node",
    "calls a tree",
    "rows visited a tree",
    "projection",
    "drawing",
    "the rest",
    "projection / traffic",
    "projection / arithmetic",
    "share of the time",
)


def facts(row):
    return (
        "`{command}`, {date}, {cpu_model}, {cores} cores, load {load_at_start} at the start; "
        "{compiler}, -march={march}; {rows:,} images of {data}, {trees} trees, {repeats} repeats, "
        "one reading of the clock {clock_ns:.0f} ns."
    ).format_map(row)


def report(by_work):
    summary = markdown(SUMMARY, [summary_line(*item) for item in by_work.items()]).rstrip()
    first = next(iter(by_work.values()))[0]
    loads = "; ".join(
        f"{WORKS[work]}: {rows[0]['all_wall_s'] / rows[0]['all_cpu_s']:.2f}"
        for work, rows in by_work.items()
    )
    parts = [
        f"# Where the time of growing goes\n\n{NOTE}\n\n{facts(first)}",
        "Seconds that passed for each second of the processor while growing, which are 1 on a "
        f"quiet machine: {loads}.",
        summary,
        "## By the size of the node\n\nNanoseconds a row and candidate. A node is one call of the "
        "projection, but for the few that draw again.",
    ]
    for work, rows in by_work.items():
        parts.append(f"### {WORKS[work]}\n\n{markdown(SIZES, size_lines(rows)).rstrip()}")
    return "\n\n".join(parts) + "\n"


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", help="an .npz file; without it, see benchmarks/README.md")
    parser.add_argument("--stand-in", action="store_true", help="scikit-learn's digits, enlarged")
    parser.add_argument("--trees", type=positive, default=10)
    parser.add_argument("--repeats", type=positive, default=5)
    parser.add_argument("--output", type=Path, default=FOLDER)
    options = parser.parse_args()
    missing = native.missing()
    if missing:
        raise SystemExit(f"phases.py needs {' and '.join(missing)}.")
    name, path = data.images(options.mnist, options.stand_in)
    X, y, _, _ = arrays.load(path)
    with tempfile.TemporaryDirectory() as folder:
        images = Path(folder) / "images"
        images.write_bytes(X.tobytes() + y.astype(np.uint8).tobytes())
        print("Compiling phases.cpp, about a minute ...", flush=True)
        program = native.build("phases", MARCH, folder)
        run = {**run_facts(), "compiler": native.first_line(native.compiler()), "march": MARCH}
        sheet = Sheet(options.output, "phases", run)
        by_work = {}
        for work in WORKS:
            print(f"{WORKS[work]} ...", flush=True)
            for row in measure(program, work, images, len(X), options):
                sheet.add(data=name, work=work, **row)
                by_work.setdefault(work, []).append(sheet.rows[-1])
    text = report(by_work)
    write_whole(options.output / "phases.md", text)
    print(text)


if __name__ == "__main__":
    main()
