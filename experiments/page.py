"""Generated parts of the pages: copied from the results into marked places, never typed.

Between `<!-- table NAME -->` and `<!-- end -->` stands results/NAME.md. Within a sentence, between
`<!-- duration NAME -->` and `<!-- end -->`, stands results/duration-NAME.md.
"""

import re
from pathlib import Path

from experiments.store import FOLDER
from measuring.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
TABLE = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n)(?P<old>.*?)(?=<!-- end -->)", re.DOTALL)
DURATION = re.compile(
    r"(<!--\s+duration\s+(?P<name>[\w-]+)\s+-->)(?P<old>.*?)(?=<!-- end -->)", re.DOTALL
)


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages that may have marked places."""
    found = [root / "README.md", root / "experiments" / "README.md"]
    return [path for path in (*found, *sorted((root / "docs").glob("*.md"))) if path.exists()]


def fill(root: Path = ROOT, results: Path = FOLDER) -> list[str]:
    """Bring every marked place up to date. Return the names of results that do not exist."""
    missing = []
    for page in pages(root):
        old = page.read_text()
        new = filled(old, results)
        if new != old:
            write_whole(page, new)
        missing += [name for name in names(old) if not (results / f"{name}.md").exists()]
    return missing


def names(text: str) -> list[str]:
    """Return the results that a page shows."""
    tables = [match["name"] for match in TABLE.finditer(text)]
    return tables + [f"duration-{match['name']}" for match in DURATION.finditer(text)]


def filled(text: str, results: Path) -> str:
    """Return a page with its marked places up to date; places without a result stay as they are."""

    def table(match):
        new = results / f"{match['name']}.md"
        return f"{match[1]}\n{new.read_text().strip()}\n\n" if new.exists() else match[0]

    def duration(match):
        new = results / f"duration-{match['name']}.md"
        return f"{match[1]}{new.read_text().strip()}" if new.exists() else match[0]

    return DURATION.sub(duration, TABLE.sub(table, text))
