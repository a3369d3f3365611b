"""How long the commands that run experiments take, from the seconds that their rows carry.

Pages quote these values in marked places (page.py); none is typed. What counts is the CPU time of
training and testing, because the machine of the stored rows was busy with other work. Rows
without CPU times have the seconds that passed.
"""

from itertools import groupby
from pathlib import Path

from experiments.store import read
from measuring import tables
from measuring.files import write_whole

PROCESSES = 2  # the default of --jobs, which the rows were measured with
CPU = ("train_seconds", "test_seconds")


def elapsed(rows):
    """Return the seconds that passed. The rows of one task follow each other and share these."""
    return sum(spent for (spent, _), _ in groupby(rows, lambda row: (row["seconds"], row["date"])))


def work(rows):
    """Return the CPU-seconds of training and testing, or what passed where rows have none."""
    if rows and CPU[0] in rows[0]:
        return sum(row[name] for row in rows for name in CPU)
    return elapsed(rows)


def text(seconds):
    """Return a duration on two idle cores in words, no more precise than the measurement is."""
    minutes = seconds / PROCESSES / 60
    if minutes < 90:
        return f"about {10 * max(1, round(minutes / 10))} minutes"
    return f"about {round(2 * minutes / 60) / 2:g} hours"


def write(csvs: Path, commands: dict[str, tuple[str, ...]]) -> None:
    """Write a table of the durations, and each alone; `commands` names the studies of each."""
    lines = []
    for command, studies in commands.items():
        rows = {study: read(csvs, study) for study in studies}
        worked, passed = (
            sum(measure(found) for found in rows.values()) for measure in (work, elapsed)
        )
        if not worked:
            continue
        write_whole(csvs / f"duration-{command}.md", text(worked) + "\n")
        hours = [f"{seconds / 3600:.1f}" for seconds in (worked, passed)]
        lines.append([f"`make {command}`", text(worked), *hours])
    if lines:
        header = ["", "on two idle cores", "CPU hours", "hours that passed, busy machine"]
        write_whole(csvs / "durations.md", tables.markdown(header, lines))
