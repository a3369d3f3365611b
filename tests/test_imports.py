"""Who may import whom: the table in docs/design.md, held against the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "morforest"
# Third-party modules that are imported where they are used, because they take long to import, or
# may be missing.
LAZY = {
    "PIL",
    "onnx",
    "pandas",
    "scipy.linalg",
    "scipy.linalg.blas",
    "scipy.optimize",
    "sklearn.datasets",
}


def name_of(path):
    """The name of a module in the package, such as "dictionary._boxes"."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
FOLDERS = {name for name, path in MODULES.items() if path.stem == "__init__"}


def read_table(text):
    """The table of the page as {module: modules that it may import}."""
    table = text.split("## Who may import whom")[1].split("\n|", 1)[1].split("\n\n", 1)[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()]
    assert [cell.strip() for cell in rows[0]] == ["module", "may import"]
    allowed, above = {}, []
    for modules, says in rows[2:]:
        names = re.findall("`(.*?)`", modules)
        says, _, excluded = says.partition("except")
        given = list(above) if "all above" in says else re.findall("`(.*?)`", says)
        given = [name for name in given if name not in re.findall("`(.*?)`", excluded)]
        for i, name in enumerate(names):
            assert name not in allowed, f"{name} is in two rows"
            allowed[name] = {*given, *names[:i]}
        above += names
    return allowed


TABLE = read_table((ROOT / "docs" / "design.md").read_text())


def may_import(module, other):
    """Say whether the table lets a module import another one of the package."""
    within = {other, other.split(".")[0]}  # a folder stands for every module in it
    if other in FOLDERS:  # what a folder offers comes from all of its modules
        within = {name for name in MODULES if name.startswith(f"{other}.")}
        if other in TABLE[module]:
            return not module.startswith(f"{other}.")
        return within <= TABLE[module]
    return bool(within & TABLE[module])


def is_for_types(node):
    """Whether a statement is ``if TYPE_CHECKING:``, whose imports never run."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_of(path):
    """The modules that a file imports, each with whether it does so inside a function."""
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if not is_for_types(node)]
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            assert node.module is not None
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                known = submodule.removeprefix("morforest.") in MODULES
                yield (submodule if known else node.module), id(node) in inside


def own_imports(path):
    """The modules of this package that a file imports."""
    return {
        name.removeprefix("morforest").removeprefix(".")
        for name, _ in imports_of(path)
        if name.split(".")[0] == "morforest"
    }


def test_the_table_names_every_module():
    assert set(TABLE) == set(MODULES) - FOLDERS


def test_the_overview_names_every_module():
    text = (ROOT / "docs" / "design.md").read_text()
    overview = text.split("## Overview")[1].split("The core is in")[0]
    cells = [line.split("|")[1] for line in overview.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in re.findall(r"`(.*?)\.py`", cell)]
    assert len(named) == len(set(named))
    assert {name.replace("/", ".") for name in named} == set(MODULES) - FOLDERS


def test_the_overview_names_every_folder_of_the_core():
    text = (ROOT / "docs" / "design.md").read_text()
    named = re.findall(r"^\| `core/(\w+)/` \|", text, re.MULTILINE)
    assert sorted(named) == sorted(p.name for p in (ROOT / "core").iterdir() if p.is_dir())


@pytest.mark.parametrize("module", sorted(set(MODULES) - FOLDERS))
def test_modules_import_only_what_the_table_allows(module):
    forbidden = {o for o in own_imports(MODULES[module]) if not may_import(module, o)}
    assert not forbidden, f"{module} may not import {sorted(forbidden)}: see docs/design.md"


def test_imports_stand_at_the_top():
    late = {(m, n) for m, path in MODULES.items() for n, inside in imports_of(path) if inside}
    assert {name for _, name in late} == LAZY, f"inside functions: {sorted(late)}"


def test_what_the_table_forbids_would_be_found():
    assert not may_import("_validation", "_model")
    assert not may_import("_auto", "forest")
    assert not may_import("dictionary._base", "dictionary")
    assert may_import("_auto", "dictionary")
    assert may_import("_auto", "dictionary._presets")
    assert may_import("augment", "dictionary._base")
    assert not may_import("boosting", "_forest_base")


def test_work_is_spread_over_threads_in_one_place():
    users = {module for module, path in MODULES.items() if "joblib" in dict(imports_of(path))}
    assert users == {"_parallel"}


def read_core_table(text):
    """The table of the core's folders as {folder: folders that it may include from}."""
    rows = re.findall(r"^\| `core/(\w+)` \| (nothing|all above.*|`core/.*) \|$", text, re.MULTILINE)
    allowed, above = {}, set()
    for folder, says in rows:
        says, _, excluded = says.partition("except")
        given = above if "all above" in says else set(re.findall(r"`core/(\w+)`", says))
        allowed[folder] = given - set(re.findall(r"`core/(\w+)`", excluded))
        above = above | {folder}
    return allowed


CORE_TABLE = read_core_table((ROOT / "docs" / "design.md").read_text())


def test_the_table_names_every_folder_of_the_core():
    folders = {path.name for path in (ROOT / "core").iterdir() if path.is_dir()}
    assert set(CORE_TABLE) == folders - {"tests"}


@pytest.mark.parametrize("folder", CORE_TABLE)
def test_folders_of_the_core_include_only_what_the_table_allows(folder):
    included = {
        found
        for path in (ROOT / "core" / folder).glob("*.[ch]pp")
        for found in re.findall(r'#include "(\w+)/', path.read_text())
    }
    assert included <= CORE_TABLE[folder] | {folder}
