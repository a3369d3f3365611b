"""What stands in several files of the project agrees, and the package carries what it must."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import morforest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")}


def test_the_version_is_the_same_everywhere():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert importlib.metadata.version("morforest") == morforest.__version__
    assert CITATION["version"] == morforest.__version__


def test_the_papers_authors_are_cited():
    (paper,) = CITATION["references"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == [
        *("Li", "Perry", "Huynh", "Tomita", "Mehta"),
        *("Arroyo", "Patsolic", "Falk", "Sarma", "Vogelstein"),
    ]
    assert paper["doi"] == "10.1137/21M1449117"


def test_pre_commit_and_make_lint_run_the_same_versions():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    pinned = {one for hook in hooks for one in hook["additional_dependencies"]}
    wanted = PROJECT["project"]["optional-dependencies"]["test"]
    assert pinned == {one for one in wanted if "==" in one}


def test_licences_of_what_is_compiled_in_are_installed():
    installed = importlib.metadata.files("morforest")
    files = {file.name: file.read_text() for file in installed if "licenses" in file.parts}
    assert files.keys() == {"LICENSE", "nanobind.txt", "robin-map.txt"}
    assert "Wenzel Jakob" in files["nanobind.txt"]
    assert "Permission is hereby granted" in files["robin-map.txt"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_may_do_little(name):
    workflow = yaml.safe_load(WORKFLOWS[name])
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job.get("permissions", {"id-token": "write"}) == {"id-token": "write"}
        assert "timeout-minutes" in job
    actions = re.findall(r"uses: (\S+)", WORKFLOWS[name])
    assert actions
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", action) for action in actions)


def test_workflows_test_the_oldest_python():
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    python = yaml.safe_load(WORKFLOWS["tests.yml"])["jobs"]["python"]
    assert oldest in python["strategy"]["matrix"]["python"]
