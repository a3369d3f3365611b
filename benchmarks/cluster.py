"""Forests on data larger than memory, on clusters of worker processes of this machine.

    python -m benchmarks.cluster [--only scaling memory constants] [--quick]

Workers have one thread each, and make the blocks of the data each time that these are read.
XGBoost's estimator for dask runs on the same blocks, in an environment of its own. Bytes are
those that go through the loopback device, so let nothing else use it (as root, `unshare -n sh -c
"ip link set lo up; ..."` gives the benchmark a device of its own). Peaks are the kernel's
high-water marks of resident memory, of the largest worker. Linux only.
"""

import argparse
import json
import math
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.results import VERSIONS, Sheet, folder, run_facts
from measuring import peers
from measuring.files import read_rows, write_whole
from measuring.machine import commit
from measuring.tables import markdown

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "large-data.md"
PLACE = re.compile(r"(<!-- benchmark cluster -->\n).*?(?=<!-- end -->)", re.DOTALL)
WORKER = ROOT / "benchmarks" / "cluster_worker.py"
CASE = {"library": "morforest", "kind": "cluster", "workers": 1, "features": 100, "trees": 100}
VALUES = ("wall_s", "cpu_s", "peak_mib", "sent_mib", "accuracy")
CONSTANTS = {
    "summary_ns_per_value": "CPU time to look at one value when all blocks are read, ns",
    "take_us_per_row": "CPU time to take one row of 100 features out of a block, us",
    "grow_us_per_row_and_level": "CPU time to grow one tree, per row and level of log2(rows), us",
}
PATIENCE = 1800  # seconds for one case


def cases(quick):
    """Return settings by section. Those that are compared follow one another."""
    small = 20 if quick else 1
    two = {"rows": 2_000_000 // small, "limit_mib": 4096}
    large = {"rows": 16_000_000 // small, "trees": 20, "limit_mib": 1024}
    turns = [{**two, "workers": workers} for workers in (1, 2)]
    return {
        "scaling": [
            {**some, "library": library} for library in ("morforest", "xgboost") for some in turns
        ],
        "memory": [
            {**large, "workers": 2},
            {**large, "kind": "process"},
            {**large, "workers": 2, "library": "xgboost"},
        ],
        "constants": [{"kind": "constants", "rows": 1_000_000 // small, "limit_mib": 4096}],
    }


def run(setting, python):
    """Measure one setting in a fresh process; None and the reason if it fails."""
    try:
        done = subprocess.run(
            [str(python), str(WORKER), json.dumps(setting)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return None, f"stopped after {PATIENCE} seconds"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return None, lines[-1][:200] if lines else f"exit code {done.returncode}"
    return json.loads(done.stdout.splitlines()[-1]), ""


def measure(options):
    facts = {**run_facts(), "commit": commit()}
    sheet = Sheet(options.output, "cluster", facts)
    for row in read_rows(sheet.path, (*VERSIONS, "dask", "commit")):
        if row["section"] not in options.only:
            sheet.add(**row)
    pythons = peers.interpreters(["morforest", "xgboost-dask"])
    for section, settings in cases(options.quick).items():
        if section not in options.only:
            continue
        for some in settings:
            setting = {**CASE, **some}
            python = pythons.get(
                "morforest" if setting["library"] == "morforest" else "xgboost-dask"
            )
            if python is None:
                continue
            found, failure = run(setting, python)
            print(section, setting, found or failure, flush=True)
            if found is None and setting["library"] == "morforest":
                raise SystemExit(f"{section}, {setting}: {failure}")
            found = found or {}
            names = ("library_version", "dask", "numpy", "python", *VALUES, *CONSTANTS)
            sheet.add(
                section=section,
                **setting,
                **{name: found.get(name, "") for name in names},
                failure=failure,
            )
    return sheet.rows


# --- the report ----------------------------------------------------------------------------------


def report(rows):
    """Return the tables as text, without a title."""
    measured = [row for row in rows if row["section"] != "constants"]
    parts = [describe(rows), table(measured)]
    constants = [row for row in rows if row["section"] == "constants"]
    if constants:
        parts.append(worked_out(constants[-1]))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def describe(rows):
    run = "`{command}`, {date}, commit {commit}, {cpu_model}, {cores} cores, load {load_at_start}."
    runs = dict.fromkeys(run.format_map(row) for row in rows)
    library = "{library} {library_version} with dask {dask}, NumPy {numpy}, Python {python}"
    libraries = dict.fromkeys(library.format_map(row) for row in rows if row["library_version"])
    return (
        f"{' '.join(runs)} {'; '.join(libraries)}.\n\n"
        "Tables of 100 features in float32, two classes, blocks of 100,000 rows, one thread per "
        "worker; 2,000,000 rows are .75 GiB, 16,000,000 are 6 GiB. Accuracy is that of 50,000 "
        "other rows. *Process* is `fit_blocks` in one process without a cluster."
    )


def table(rows):
    header = "library | rows | trees or rounds | where | memory limit, GiB | wall s | CPU s"
    header = [*header.split(" | "), "largest peak, MiB", "sent, MiB", "accuracy"]
    lines = []
    for row in rows:
        process = row["kind"] == "process"
        where = "process" if process else f"cluster, workers: {row['workers']}"
        limit = "" if process else f"{row['limit_mib'] / 1024:g}"
        start = [row["library"], f"{row['rows']:,}", row["trees"], where, limit]
        if row["failure"]:
            lines.append([*start, f"failed: {row['failure']}", *[""] * 4])
            continue
        lines.append(
            [
                *start,
                f"{row['wall_s']:.1f}",
                f"{row['cpu_s']:.1f}",
                f"{row['peak_mib']:,.0f}",
                "" if process else f"{row['sent_mib']:,.0f}",
                f"{row['accuracy']:.3f}",
            ]
        )
    return markdown(header, lines)


def worked_out(row, rows=10**9, features=100, trees=1000, machines=100, cores=8, gigabytes=16):
    """Return the constants, and what they say of very large data."""
    draws = rows**0.7
    tree_gb = draws * features * 4 / 1e9
    brought = machines * gigabytes / 8
    readings = 1 + -(-trees * tree_gb // brought)
    summary = rows * features * row["summary_ns_per_value"] / 1e9
    take = trees * draws * row["take_us_per_row"] / 1e6
    grow = trees * draws * math.log2(draws) * row["grow_us_per_row_and_level"] / 1e6
    total = summary + take + grow
    measured = markdown(
        ["constant, one thread", "measured"],
        [[text, f"{row[name]:.3g}"] for name, text in CONSTANTS.items()],
    )
    worked = markdown(
        ["quantity", "value"],
        [
            ["rows that each tree draws, n^0.7", f"{draws:,.0f}"],
            ["samples of one tree", f"{tree_gb:.2f} GB"],
            ["sent to trees in all", f"{trees * tree_gb:,.0f} GB"],
            ["the same per machine", f"{trees * tree_gb / machines:,.1f} GB"],
            [f"readings of the data, {gigabytes} GB per machine", f"{readings:.0f}"],
            ["CPU time, looking at all values", f"{summary:,.0f} s"],
            ["CPU time, taking rows", f"{take:,.0f} s"],
            ["CPU time, growing", f"{grow:,.0f} s"],
            ["all of it per core", f"{total / machines / cores:,.0f} s"],
        ],
    )
    return (
        f"{measured}\n{rows:,} rows of {features} features in float32 are "
        f"{rows * features * 4 / 1e9:,.0f} GB. With these constants, {trees:,} trees on {machines} "
        f"machines of {cores} cores cost, beside reading the data from where they are stored:\n\n"
        f"{worked}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = list(cases(False))
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="SECTION")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    options.output = options.output or folder(options.quick)
    rows = measure(options)
    text = report(rows)
    write_whole(options.output / "cluster.md", f"# Clusters\n\n{text}")
    print(text)
    if options.output == folder(False):  # the page shows full runs only
        write_whole(PAGE, PLACE.sub(lambda found: f"{found[1]}\n{text}\n", PAGE.read_text()))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted. The result file holds what was measured.")
