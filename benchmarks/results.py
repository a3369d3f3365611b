"""Where measurements go: a CSV file that only grows, and a Markdown table of the latest run."""

import csv
import datetime
import math
import os
import platform
import statistics
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "results"


def machine():
    """Facts about this run that each row repeats. A high load makes CPU seconds longer."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return {
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


class Sheet:
    """The rows of one section: each is appended to the CSV file as soon as it is known."""

    def __init__(self, folder, name, facts):
        self.rows = []
        self._facts = facts
        self._csv = Path(folder) / f"{name}.csv"
        self._markdown = Path(folder) / f"{name}.md"

    def add(self, **row):
        self.rows.append(row)
        row = {**self._facts, **row}
        self._csv.parent.mkdir(parents=True, exist_ok=True)
        with self._csv.open("a+", newline="") as file:
            file.seek(0)
            header = next(csv.reader(file), None)
            if header not in (None, list(row)):
                raise SystemExit(f"{self._csv} has other columns; move it away first.")
            writer = csv.DictWriter(file, row, lineterminator="\n")
            if header is None:
                writer.writeheader()
            writer.writerow(row)

    def select(self, field, **conditions):
        """The values of one field, in the order measured, of the rows that agree."""
        rows = (r for r in self.rows if all(r[key] == v for key, v in conditions.items()))
        return [row[field] for row in rows]

    def publish(self, title, note, header, lines):
        """Print the table, and write it with its title and the facts of the run."""
        table = [header, ["---"] * len(header), *lines]
        table = "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in table)
        text = f"# {title}\n\n{note}\n\n{self._setting()}\n\n{table}\n"
        print(text)
        self._markdown.write_text(text)

    def _setting(self):
        libraries = dict.fromkeys(
            "{library} {library_version} with Python {python}, NumPy {numpy}, "
            "scikit-learn {scikit_learn}".format_map(row)
            for row in self.rows
        )
        when_and_where = (
            "{date}, {cpu_model}, {cores} cores, load {load_at_start} at the start.".format_map(
                self._facts
            )
        )
        return f"{when_and_where} {'; '.join(libraries)}."


def mean_and_error(values, digits=4):
    """Mean and its standard error, as text; `values` are independent repeats."""
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {standard_error(values):.{digits}f}"


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def median_and_range(values, digits=3):
    """Median with the smallest and largest value, as text."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"
