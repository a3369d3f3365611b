"""Run every target that `make help` lists once, at its smallest size, in a fresh clone.

    python -m measuring.smoke                  all targets
    python -m measuring.smoke --only bench     one, or several
    python -m measuring.smoke --keep           keep the clone, with its environments

The clone holds what is committed, so commit first. A target that fails does not stop the others,
and the command fails if any did. MNIST and recordings are used where MORFOREST_MNIST and
MORFOREST_DATA name them, or where they can be fetched; studies without data are left out, by name.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("build") / "smoke"

# What makes a target small, and what must hold after it. A new target needs an entry: a test
# compares these with `make help`. They run in this order, so that `clean` comes last.
TARGETS = {
    "help": {},
    "test": {"TESTS": "tests/test_random.py", "OLDEST_TESTS": "tests/test_estimator_checks.py"},
    "demo": {"DEMO": "--small"},
    "figures": {},
    "bench": {"BENCH": "--tiny --stand-in"},
    "bench-quick": {"BENCH": "--tiny --stand-in --only import"},
    "paper": {"PAPER": "--tiny"},
    "paper-quick": {"PAPER": "--tiny"},
    "beyond": {"BEYOND": "--tiny"},
    "beyond-quick": {"BEYOND": "--tiny"},
    "theory": {"THEORY": "--tiny"},
    "theory-quick": {"THEORY": "--tiny"},
    "data-quality": {"DATA_QUALITY": "--tiny"},
    "data-quality-quick": {"DATA_QUALITY": "--tiny"},
    "eeg": {"EEG": "--tiny"},
    "eeg-quick": {"EEG": "--tiny"},
    "manifolds": {"MANIFOLDS": "--tiny"},
    "manifolds-quick": {"MANIFOLDS": "--tiny"},
    "format": {},
    "smoke": {"SMOKE": "--list"},
    "clean": {},
}
# These targets write files that are committed: from stored results alone, no text may change, and
# Python code is formatted.
UNCHANGED = {
    "figures": ["git", "diff", "--exit-code", "--stat", "--", "*.md"],
    "format": ["git", "diff", "--exit-code", "--stat", "--", "*.py"],
}


def listed(makefile):
    """Return the targets that `make help` shows."""
    return re.findall(r"^([a-z-]+):.*## ", makefile, flags=re.MULTILINE)


def arguments(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=TARGETS, default=list(TARGETS), metavar="TARGET")
    add("--keep", action="store_true", help="do not remove the clone")
    add("--list", action="store_true", help="show what would be run, and do nothing")
    return parser.parse_args(words)


def command(target):
    return ["make", target, *(f"{name}={value}" for name, value in TARGETS[target].items())]


def clone(folder):
    """Make a clone of what is committed, beside which nothing is installed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT).returncode:
        print("There are changes that are not committed; the clone does not have them.", flush=True)


def run(target, folder):
    """Run one target in the clone. Return whether it succeeded."""
    # Variables of an outer make, such as its job server, must not reach the inner one.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    commands = [command(target), *([UNCHANGED[target]] if target in UNCHANGED else [])]
    for words in commands:
        print(f"== {' '.join(words)}", flush=True)
        if subprocess.run(words, cwd=folder, env=inherited).returncode:
            return False
    return True


def main():
    args = arguments()
    targets = [target for target in TARGETS if target in args.only]
    if args.list:
        print("\n".join(" ".join(command(target)) for target in targets))
        return 0
    folder = ROOT / FOLDER
    clone(folder)
    results = {}
    for target in targets:
        start = time.monotonic()
        results[target] = run(target, folder)
        word = "passed" if results[target] else "FAILED"
        print(f"== {target}: {word} after {time.monotonic() - start:.0f} s", flush=True)
    if not args.keep:
        shutil.rmtree(folder)
    failed = [target for target, passed in results.items() if not passed]
    print(f"{len(results) - len(failed)} of {len(results)} targets passed.")
    return f"Failed: {', '.join(failed)}." if failed else 0


if __name__ == "__main__":
    sys.exit(main())
