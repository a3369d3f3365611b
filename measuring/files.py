"""Result files: CSV rows with numbers as numbers, and texts that are written whole."""

import csv
import io
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader, or a kill, finds the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)


def cells(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as text; none if there is no file.

    A last line without an end was torn by a kill. It is left out.
    """
    if not path.exists():
        return []
    text = path.read_bytes().decode()
    return list(csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1])))


def read_rows(path: Path, texts: tuple[str, ...] = ()) -> list[dict]:
    """Return the rows of a CSV file with numbers as numbers, but for the columns in `texts`."""
    return [
        {name: cell if name in texts else number(cell) for name, cell in row.items()}
        for row in cells(path)
    ]


def number(cell: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell
