"""The pages: their Python blocks run, their links lead somewhere, and the files they name exist.

A block that cannot run stands below a line `<!-- not run -->`.
"""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "benchmarks" / "README.md",
        ROOT / "experiments" / "README.md",
    ]
)
NOT_RUN = "<!-- not run -->"
# Folders of the repository: a path that begins with one must exist.
FOLDERS = ("benchmarks", "core", "dictionary", "docs", "examples", "experiments", "src", "tests")
PYTHON = ("src", "benchmarks", "examples", "experiments", "tests")

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="the pages are not beside the tests"
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Return the first line number and the code of each block that is meant to run."""
    blocks, code, first, marked = [], None, 0, False
    for number, line in enumerate(text.splitlines(), 1):
        if code is not None:
            if line.startswith("```"):
                if not marked:
                    blocks.append((first, "\n".join(code)))
                code, marked = None, False
            else:
                code.append(line)
        elif line.startswith("```python"):
            code, first = [], number + 1
        elif line.strip():
            marked = line.strip() == NOT_RUN
    assert code is None, "a block does not end"
    return blocks


def without_code(text: str) -> str:
    """Return a page without code blocks and code spans, in which brackets are no links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?: {4}).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`", lambda span: "x" if span[0] else "", text)


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    found: set[str] = set()
    body = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ +(.*?) *#*$", body, flags=re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}-{number}"
        found.add(unique)
    return found


@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_blocks(page.read_text())], ids=name_of
)
def test_python_blocks_run_one_after_the_other(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    namespace = {"__name__": "__main__"}
    for line, code in python_blocks(page.read_text()):
        # Blank lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
    from matplotlib import pyplot

    pyplot.close("all")


def relative_links(page: Path) -> list[str]:
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", without_code(page.read_text()))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_and_anchors_exist(page):
    broken = []
    for target in relative_links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (
            anchor and file.suffix == ".md" and anchor not in anchors(file.read_text())
        ):
            broken.append(target)
    assert broken == []


def test_links_lead_from_the_first_page_to_every_page_of_the_docs():
    reached, new = set(), [ROOT / "README.md"]
    while new:
        page = new.pop()
        reached.add(page)
        links = {(page.parent / link.partition("#")[0]).resolve() for link in relative_links(page)}
        new += [link for link in links if link in PAGES and link not in reached]
    assert {page.name for page in ROOT.glob("docs/*.md") if page not in reached} == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_pages_name_exist(page):
    """Of pages that describe the present; the changelog and decisions speak of the past too."""
    if page.name == "CHANGELOG.md" or page.parent.name == "decisions":
        pytest.skip("it may name files of the past")
    missing = []
    for path in re.findall(r"`([\w./-]+)`", page.read_text()):
        first = path.split("/")[0]
        if "/" not in path and path.endswith(".py"):
            if not any(next((ROOT / folder).rglob(path), None) for folder in PYTHON):
                missing.append(path)
            continue
        if "/" not in path or first not in FOLDERS:
            continue
        base = ROOT / "src" / "morforest" if first == "dictionary" else ROOT
        if not (base / path).exists() and not (page.parent / path).exists():
            missing.append(path)
    assert missing == []


def test_blocks_are_found_and_may_be_left_out():
    text = f"```python\na = 1\n\nb = 2\n```\n\n{NOT_RUN}\n```python\nc\n```\n\n```python\nd\n```\n"
    assert python_blocks(text) == [(2, "a = 1\n\nb = 2"), (13, "d")]
    assert python_blocks("```\nno\n```\n") == []


def test_anchors_are_those_of_github():
    text = "# A `b_c`: d, e\n\n```\n# no\n```\n\n## [Link](x) & more\n\n## A `b_c`: d, e\n"
    assert anchors(text) == {"a-b_c-d-e", "link--more", "a-b_c-d-e-1"}
