"""Where measurements go: rows to a CSV file as they are made, and a table of them to Markdown."""

import csv
import datetime
import math
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "results"


def folder(quick):
    """Quick results lie apart: they must not replace those of a full run."""
    return FOLDER / "quick" if quick else FOLDER


VERSIONS = ("library_version", "python", "numpy", "scikit_learn")  # 0.10 is not 0.1
FACTS = ("command", "date", "cpu_model", "cores", "load_at_start")


def facts_of(row):
    return {name: row[name] for name in FACTS}


def machine():
    """Facts about this run that each row repeats. A high load makes CPU seconds longer."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return {
        "command": _command(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu_model": _cpu_model(),
        "cores": os.cpu_count(),
        "load_at_start": round(load, 2),
    }


def _cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return platform.processor() or platform.machine()


def _command():
    """The command of this run, without the folders of this machine."""
    words = ["python", f"benchmarks/{Path(sys.argv[0]).name}"]
    return " ".join(words + [Path(word).name if "/" in word else word for word in sys.argv[1:]])


class Sheet:
    """The rows of one section. The files hold the latest run, and nothing else.

    Each row is in the CSV file as soon as it is known, as a whole line: a run that is stopped
    loses nothing that it measured.
    """

    def __init__(self, folder, name, facts):
        self.rows = []
        self.name = name
        self._facts = facts
        self.path = Path(folder) / f"{name}.csv"

    def add(self, **row):
        row = {**self._facts, **row}
        if not self.rows:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._write("w", list(row))
        elif list(row) != list(self.rows[0]):
            raise ValueError(f"columns {list(row)} do not fit {self.path.name}")
        self._write("a", row.values())
        self.rows.append(row)

    def _write(self, mode, cells):
        with self.path.open(mode, newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(cells)


def publish(path, title, note, rows, header, lines, after=""):
    """Print a table, and write it with its title and the facts of the run."""
    table = markdown_table(header, lines)
    print(f"\n{title}\n\n{table}\n", flush=True)
    write_whole(path, f"# {title}\n\n{note}\n\n{setting(rows)}\n\n{table}\n{after}")


def setting(rows):
    """What was run, when, where and with which versions."""
    run = "`{command}`, {date}, {cpu_model}, {cores} cores, load {load_at_start} at the start."
    library = (
        "{library} {library_version} with Python {python}, NumPy {numpy}, "
        "scikit-learn {scikit_learn}"
    )
    runs = dict.fromkeys(run.format_map(row) for row in rows)
    libraries = dict.fromkeys(library.format_map(row) for row in rows)
    return f"{' '.join(runs)} {'; '.join(libraries)}."


def markdown_table(header, lines):
    table = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in table)


def write_whole(path, text):
    """Write a file so that a reader, or Ctrl-C, finds the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)


def read(path):
    """The rows of a CSV file as dictionaries, numbers as numbers; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {key: cell if key in VERSIONS else _number(cell) for key, cell in row.items()}
            for row in csv.DictReader(file)
        ]


def _number(cell):
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell


def mean_and_error(values, digits=4):
    """Mean and its standard error, as text; `values` are independent repeats."""
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {standard_error(values):.{digits}f}"


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def median_and_range(values, digits=3):
    """Median with the smallest and largest value, as text; the value alone if there is one."""
    low, middle, high = min(values), statistics.median(values), max(values)
    if len(values) == 1:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"
