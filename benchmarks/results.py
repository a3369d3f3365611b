"""Where measurements go: rows to a CSV file as they are made, and their table to Markdown."""

import csv
import os
from pathlib import Path

from measuring import machine
from measuring.files import read_rows, write_whole
from measuring.tables import markdown

FOLDER = Path(__file__).resolve().parent / "results"


def folder(quick):
    """Return where results go: those of a quick run must not replace those of a full one."""
    return FOLDER / "quick" if quick else FOLDER


VERSIONS = ("library_version", "python", "numpy", "scikit_learn")  # 0.10 is not 0.1
FACTS = ("command", "date", "cpu_model", "cores", "load_at_start")


def facts_of(row):
    return {name: row[name] for name in FACTS}


def run_facts():
    """Return facts about this run for each row. A high load makes CPU seconds longer."""
    return {
        "command": machine.command(),
        "date": machine.now(),
        "cpu_model": machine.cpu_model(),
        "cores": os.cpu_count(),
        "load_at_start": machine.load(),
    }


class Sheet:
    """The rows of one section. The files hold the latest run, and nothing else.

    Each row is in the CSV file as soon as it is known, as a whole line, so that an interrupted run
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
    table = markdown(header, lines)
    print(f"\n{title}\n\n{table}", flush=True)
    write_whole(path, f"# {title}\n\n{note}\n\n{setting(rows)}\n\n{table}{after}")


def setting(rows):
    """Return what was run, when, where and with which versions."""
    run = "`{command}`, {date}, {cpu_model}, {cores} cores, load {load_at_start} at the start."
    library = (
        "{library} {library_version} with Python {python}, NumPy {numpy}, "
        "scikit-learn {scikit_learn}"
    )
    runs = dict.fromkeys(run.format_map(row) for row in rows)
    libraries = dict.fromkeys(library.format_map(row) for row in rows)
    return f"{' '.join(runs)} {'; '.join(libraries)}."


def read(path):
    """Return the rows of a CSV file, numbers as numbers; none if there is no file."""
    return read_rows(path, VERSIONS)
