"""A virtual environment for treeple, which does not import beside today's scikit-learn."""

import os
import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".venv-treeple"
PACKAGES = ("treeple==0.10.3", "scikit-learn==1.6.1")


def interpreter():
    """The environment's Python; the environment is made first where it is absent or broken."""
    python = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not _has_treeple(python):
        _make(python)
    return python


def _has_treeple(python):
    if not python.exists():
        return False
    command = [str(python), "-c", "import treeple"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def _make(python):
    print(f"Making {FOLDER} with {' and '.join(PACKAGES)} ...", file=sys.stderr)
    venv.create(FOLDER, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES]
    if subprocess.run(command).returncode or not _has_treeple(python):
        raise SystemExit(
            f"Could not install {' and '.join(PACKAGES)} for Python {sys.version.split()[0]}. "
            "Give --treeple-python an interpreter that has them, or leave treeple out with "
            "--libraries morforest scikit-learn."
        )
