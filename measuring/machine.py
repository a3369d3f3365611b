"""Facts about a run that its results carry: the processor, the versions of libraries, the date."""

import datetime
import importlib.metadata
import math
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

LIBRARIES = (
    "morforest",
    "numpy",
    "scipy",
    "scikit-learn",
    "xgboost",
    "torch",
    "aeon",
    "mapie",
    "quantile-forest",
    "mne",
    "pyriemann",
)


@cache
def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return platform.processor() or platform.machine()


def machine() -> str:
    return f"{cpu_model()}; {os.cpu_count()} cores"


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def load() -> float:
    """Return the mean number of busy processes over the last minute, where the system knows it."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else math.nan


@cache
def versions() -> str:
    """Return the versions of Python and of all libraries of the experiments in one line."""
    found = [f"python {platform.python_version()}"]
    for library in LIBRARIES:
        try:
            found.append(f"{library} {importlib.metadata.version(library)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "; ".join(found)


@cache
def commit() -> str:
    """Return the commit that is checked out, with a sign where files differ; "" outside git.

    Results do not count: a run writes them itself.
    """
    root = Path(__file__).resolve().parent.parent
    show = ["git", "describe", "--always", "--exclude=*"]
    compare = ["git", "diff", "--quiet", "HEAD", "--", ".", ":!*/results/*"]
    try:
        found = subprocess.run(show, capture_output=True, text=True, cwd=root).stdout.strip()
        differs = bool(found) and subprocess.run(compare, capture_output=True, cwd=root).returncode
    except OSError:
        return ""
    return f"{found}+" if differs else found


def command() -> str:
    """Return the command of this run, without the folders of this machine."""
    program = Path(sys.argv[0])
    words = ["python", "-m", f"{program.parent.name}.{program.stem}"]
    return " ".join(words + [Path(word).name if "/" in word else word for word in sys.argv[1:]])
