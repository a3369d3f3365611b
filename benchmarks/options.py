"""The options of programs that measure something on images."""

import argparse
from pathlib import Path

from benchmarks import data
from benchmarks.results import FOLDER


def read(description):
    """Return whether a run is quick, where its results go, and the name and file of its images."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--mnist", help="an .npz file; without it, see benchmarks/README.md")
    parser.add_argument("--stand-in", action="store_true", help="scikit-learn's digits, enlarged")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--output", type=Path, default=FOLDER)
    found = parser.parse_args()
    output = found.output / "quick" if found.quick else found.output
    return found.quick, output, *data.images(found.mnist, found.stand_in)
