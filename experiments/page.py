"""The tables of the docs: copied from the results into marked places, never typed.

A place begins with `<!-- table NAME -->` and ends with `<!-- end -->`; between them stands
results/NAME.md.
"""

import re
from pathlib import Path

from experiments.store import FOLDER
from measuring.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
PLACE = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n)(?P<old>.*?)(?=<!-- end -->)", re.DOTALL)


def fill(root: Path = ROOT, results: Path = FOLDER) -> list[str]:
    """Bring every marked place up to date, of the README and of each page in docs.

    Returns the tables that are not there.
    """
    missing = []
    for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        old = page.read_text()
        new = filled(old, results)
        if new != old:
            write_whole(page, new)
        missing += [name for name in names(old) if not (results / f"{name}.md").exists()]
    return missing


def names(text: str) -> list[str]:
    return [match["name"] for match in PLACE.finditer(text)]


def filled(text: str, results: Path) -> str:
    def replace(match):
        table = results / f"{match['name']}.md"
        if not table.exists():
            return match[0]
        return f"{match[1]}\n{table.read_text().strip()}\n\n"

    return PLACE.sub(replace, text)
