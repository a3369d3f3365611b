"""The experiments of the MORF paper, of its theory, and beyond: tables and figures.

    python -m experiments.paper                       the paper's; results/*.csv, *.md and *.png
    python -m experiments.paper --beyond              those beyond the paper
    python -m experiments.paper --theory              those of its theory
    python -m experiments.paper --data-quality        those of missing values and unequal lengths
    python -m experiments.paper --manifolds           those of scalps, spheres, maps and molecules
    python -m experiments.paper --eeg                 EEG, beside the classifiers of that field
    python -m experiments.paper --quick               the same at a small scale; results/quick
    python -m experiments.paper --only mnist          one study, or several
    python -m experiments.paper --match data=A n=200  only the tasks with these values
    python -m experiments.paper --figures             tables and figures from stored rows
    python -m experiments.paper --list                what would be run

An interrupted run resumes where it stopped when it is started again.
"""

import argparse
import importlib
import sys
from collections import Counter
from pathlib import Path

from experiments import beyond_claims, claims, durations, page, runner, theory_claims
from experiments.progress import Progress, duration
from experiments.store import FOLDER, Store, folder

# In the order of the work; MNIST, the longest, is last. Each is a module with tasks(quick),
# run(task) and figures(csvs, pngs).
STUDIES = (
    "projections",
    "importance",
    "draws",
    "simulations",
    "energy",
    "coupling",
    "departures",
    "patch_weights",
    "peer_forest",
    "misspecification",
    "iterations",
    "series",
    "mnist",
)
# What this library adds to the paper's methods; these read the rows above for their peers.
BEYOND = (
    "beyond_tables",
    "beyond_simulations",
    "beyond_series",
    "beyond_volumes",
    "beyond_images",
    "mechanisms",
)
# Whether its theorems hold, and how sure predictions are.
THEORY = (
    "theory_rates",
    "theory_conditions",
    "theory_calibration",
    "coverage",
    "deviations",
)
# Data as they come.
DATA_QUALITY = ("missing", "lengths")
# Features with places other than those of a grid.
MANIFOLDS = ("manifolds", "manifold_maps")
# The classifiers of neuroscience.
EEG = ("eeg",)
# The targets of the Makefile, by the studies that they run.
COMMANDS = {
    "paper": STUDIES,
    "beyond": BEYOND,
    "theory": THEORY,
    "data-quality": DATA_QUALITY,
    "manifolds": MANIFOLDS,
    "eeg": EEG,
}
ALL = tuple(name for studies in COMMANDS.values() for name in studies)
# More pictures of the same rows.
VIEWS = ("complexity", "times", "published_auc")


def arguments(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="fewer sizes, repeats and test samples")
    add("--tiny", action="store_true", help="one task per study and classifier, to try the suite")
    add("--beyond", action="store_true", help="run the studies beyond the paper instead of its own")
    add("--theory", action="store_true", help="run the studies of the theory instead")
    add("--data-quality", action="store_true", help="run those of missing values instead")
    add("--manifolds", action="store_true", help="run those of features with places instead")
    add("--eeg", action="store_true", help="run those of EEG instead")
    add("--only", nargs="+", choices=ALL, metavar="STUDY", help=", ".join(ALL))
    add("--match", nargs="+", type=condition, default=[], metavar="KEY=VALUE")
    add("--figures", action="store_true", help="train nothing")
    add("--list", action="store_true", help="count the tasks, and do nothing")
    add("--jobs", type=int, default=2, help="number of processes of one thread each; default: 2")
    add("--out", type=Path, help="folder of the results")
    args = parser.parse_args(words)
    if args.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {args.jobs}")
    asked = [name for name in COMMANDS if vars(args).get(name.replace("-", "_"))]
    args.only = args.only or COMMANDS[asked[-1] if asked else "paper"]
    return args


def condition(text):
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return name, value


def plan(args, store):
    """Return the tasks that are left, and the studies that cannot be run."""
    left, impossible = [], {}
    for name in ALL:
        if name not in args.only:
            continue
        try:
            tasks = importlib.import_module(f"experiments.{name}").tasks(args.quick)
        except (OSError, ValueError, LookupError) as error:  # its data are not available
            impossible[name] = str(error)
            continue
        tasks = [
            task
            for task in tasks
            if all(str(task.key.get(key)) == value for key, value in args.match)
        ]
        if args.tiny:
            tasks = cheapest(tasks)
        # Cheap tasks come first, so that every figure has points early.
        left += sorted(store.pending(tasks), key=lambda task: task.cost)
    return left, impossible


def cheapest(tasks):
    """Return the cheapest task of each classifier; of a study without classifiers, one task."""
    found = {}
    for task in tasks:
        name = task.key.get("classifier")
        if name not in found or task.cost < found[name].cost:
            found[name] = task
    return list(found.values())


def measure(tasks, args, store):
    """Run the tasks, and return how many failed for each reason."""
    progress = Progress(tasks, args.jobs)
    reasons = Counter()

    def finished(task, rows, seconds):
        store.append(task, rows, seconds)
        progress.finish(task, seconds)

    def failed(task, reason):
        if not reasons[reason]:  # report the same trouble once
            progress.say(f"FAILED {task}: {reason}")
        reasons[reason] += 1
        progress.finish(task)

    runner.run(tasks, args.jobs, finished, failed)
    return reasons


def draw(csvs):
    """Draw tables and figures of everything that has rows."""
    for name in (*ALL, *VIEWS):
        importlib.import_module(f"experiments.{name}").figures(csvs, csvs)
    claims.write(csvs)
    beyond_claims.write(csvs)
    theory_claims.write(csvs)
    durations.write(csvs, COMMANDS)
    if csvs == FOLDER:
        missing = page.fill()
        if missing:
            print(
                f"No rows yet for these tables of the docs: {', '.join(missing)}", file=sys.stderr
            )


def main(words=None):
    args = arguments(words)
    csvs = args.out or folder(args.quick, args.tiny)
    store = Store(csvs)
    troubles = 0
    if not args.figures:
        tasks, impossible = plan(args, store)
        for name, reason in impossible.items():
            print(f"LEFT OUT {name}: {reason}", file=sys.stderr)
        cost = sum(task.cost for task in tasks) / args.jobs
        counts = Counter(task.study for task in tasks)
        print(f"{len(tasks)} tasks to do {dict(counts)}, about {duration(cost)}", file=sys.stderr)
        if args.list:
            return 0
        reasons = measure(tasks, args, store) if tasks else Counter()
        for reason, count in reasons.items():
            print(f"{count} tasks failed: {reason}", file=sys.stderr)
        if args.tiny and len(impossible) < len(args.only):
            impossible = {}  # a trial of the suite may lack data
        troubles = len(impossible) + len(reasons)
    draw(csvs)
    print(f"Results: {csvs}", file=sys.stderr)
    return min(troubles, 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Finished tasks are in the result files; start again to resume.")
