"""Results on disk: one CSV file per study, which gets each row as soon as it is known.

A run that is killed loses only the tasks in progress: the next one skips the tasks whose key is
already in the file. To measure something again, delete its rows, or the file.
"""

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from measuring.files import cells, read_rows
from measuring.machine import commit, machine, now, versions

FOLDER = Path(__file__).resolve().parent / "results"
TEXT = ("versions", "date", "machine", "commit")  # columns that are never numbers


@dataclass(frozen=True)
class Task:
    """A piece of work that ends in one row or several.

    `key` names them: its columns are in each row, and no two tasks of a study share all values.
    `cost` is a guess of its CPU-seconds, for the order of work and the time left.
    """

    study: str
    key: dict[str, str | int | float]
    cost: float = 1.0

    def __str__(self):
        return ", ".join([self.study, *(f"{name} {value}" for name, value in self.key.items())])


def folder(quick: bool, tiny: bool = False) -> Path:
    """Return where results go: those of small runs must not mingle with those of a full one."""
    if tiny:
        return FOLDER / "quick" / "tiny"
    return FOLDER / "quick" if quick else FOLDER


class Store:
    """The CSV files in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def pending(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the tasks that are not done."""
        done: dict[tuple, set] = {}
        pending = []
        for task in tasks:
            names = tuple(task.key)
            if (task.study, names) not in done:
                rows = cells(self.path(task.study))
                missing = [name for name in names if rows and name not in rows[0]]
                if missing:
                    raise SystemExit(
                        f"{self.path(task.study)} has no column {missing[0]!r}: it comes from "
                        "another version of the study. Move it away to start afresh."
                    )
                done[task.study, names] = {tuple(row[name] for name in names) for row in rows}
            if tuple(map(str, task.key.values())) not in done[task.study, names]:
                pending.append(task)
        return pending

    def append(self, task: Task, rows: dict | list[dict], seconds: float) -> None:
        """Add the rows of a finished task, all of them or none."""
        rows = [rows] if isinstance(rows, dict) else rows
        facts = {
            "seconds": f"{seconds:.3f}",
            "versions": versions(),
            "machine": machine(),
            "date": now(),
            "commit": commit(),
        }
        rows = [{**task.key, **row, **facts} for row in rows]
        path = self.path(task.study)
        path.parent.mkdir(parents=True, exist_ok=True)
        header = _header(path)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not header:
            header = list(rows[0])
            writer.writerow(header)
        for row in rows:
            if row.keys() != set(header):
                raise ValueError(
                    f"{path} has the columns {header}, a new row {list(row)}; "
                    "move the file away to start afresh."
                )
            writer.writerow(row[name] for name in header)
        # A kill between two lines would leave half a task that looks like a whole one, so all lines
        # are written by one call. If a line is torn nevertheless, `_repair` removes it.
        with path.open("ab") as file:
            _repair(file)
            os.write(file.fileno(), text.getvalue().encode())

    def path(self, study: str) -> Path:
        return self.folder / f"{study}.csv"


def read(folder: Path, study: str) -> list[dict]:
    """Return the rows of a study, numbers as numbers; none if there is no file."""
    return read_rows(Path(folder) / f"{study}.csv", TEXT)


def origin(rows: list[dict]) -> str:
    """Return where rows with a commit come from: machine, versions, commit, first and last day."""
    parts = [
        sign.join(sorted({row[name] for row in rows}))
        for name, sign in (("machine", "; "), ("versions", " / "), ("commit", ", "))
    ]
    days = sorted(row["date"][:10] for row in rows)
    return f"{parts[0]}; {parts[1]}; commit {parts[2]}; {days[0]} to {days[-1]}."


def _header(path):
    rows = path.read_text().partition("\n") if path.exists() else ("", "", "")
    return next(csv.reader([rows[0]]), []) if rows[1] else []


def _repair(file):
    """Cut off a last line that has no end."""
    path = Path(file.name)
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        file.truncate(data.rfind(b"\n") + 1)
