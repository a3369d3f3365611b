"""morforest beside its peers, in one run on one machine.

    python benchmarks/compare.py --mnist mnist.npz                 everything
    python benchmarks/compare.py --mnist mnist.npz --quick         small and soon done
    python benchmarks/compare.py --mnist mnist.npz --only predict  one section

Each library lives in a process of its own (worker.py) and they take turns; treeple's runs in a
virtual environment that is made when it is first needed. Rows are added to results/*.csv, and
results/*.md hold the tables of the latest run.
"""

import argparse
import contextlib
import dataclasses
import sys
from pathlib import Path

import mnist
import results
import treeple_environment
from client import Client
from sections import SECTIONS

LIBRARIES = ("morforest", "scikit-learn", "treeple")
LARGE = 60_000


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much to measure."""

    sizes: tuple  # training images in the section "fit"
    seeds: int  # repeats in the sections "fit" and "area"
    treeple_seeds: int  # those of treeple at the large size, where it takes minutes

    def seeds_for(self, library, n):
        return self.treeple_seeds if library == "treeple" and n >= LARGE else self.seeds


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mnist", metavar="PATH", help=f"an .npz file; default: the variable {mnist.VARIABLE}")
    add("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="these sections only")
    add("--libraries", nargs="+", choices=LIBRARIES, default=LIBRARIES, help="default: all")
    add("--seeds", type=int, help="repeats of each fit; default: 5, with --quick 2")
    add("--treeple-seeds", type=int, help=f"those of treeple at n = {LARGE}; default: --seeds")
    add("--quick", action="store_true", help="no fits of 60,000 images, two seeds")
    add("--treeple-python", type=Path, help="an interpreter that has treeple already")
    add("--out", type=Path, default=results.FOLDER, help="folder of the result files")
    return parser.parse_args()


def main():
    args = arguments()
    path = mnist.locate(args.mnist)
    seeds = args.seeds or (2 if args.quick else 5)
    plan = Plan(
        sizes=(5000,) if args.quick else (5000, LARGE),
        seeds=seeds,
        treeple_seeds=seeds if args.treeple_seeds is None else args.treeple_seeds,
    )
    facts = results.machine()
    pythons = dict.fromkeys(args.libraries, sys.executable)
    if "treeple" in pythons:
        pythons["treeple"] = args.treeple_python or treeple_environment.interpreter()
    with contextlib.ExitStack() as stack:
        clients = []
        for library, python in pythons.items():
            clients.append(Client(library, python, path))
            stack.callback(clients[-1].close)
        for name in dict.fromkeys(args.only):
            SECTIONS[name](clients, results.Sheet(args.out, name, facts), plan)


if __name__ == "__main__":
    main()
