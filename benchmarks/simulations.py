"""The paper's simulations A, B and C, beside the error rates that its authors published.

    python benchmarks/simulations.py             n = 200 and 2,000, ten repeats
    python benchmarks/simulations.py --quick     n = 200, two repeats
    python benchmarks/simulations.py --only B    one simulation

A repeat draws its own training and test samples. results/simulations.csv holds the rows of the
latest run, results/simulations.md its table; those of quick runs are in results/quick.
"""

import argparse
import dataclasses
import importlib.metadata
import platform
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import results
import sklearn

from morforest import Axis, MorfClassifier, Patch, SparseOblique
from morforest.datasets import make_bars, make_circle, make_impulse

TREES = 500
TEST_SAMPLES = 10_000
SIZES = (200, 2000)


@dataclasses.dataclass(frozen=True)
class Simulation:
    make: Callable  # (n_samples, random_state=...) -> X, y
    forests: dict  # name -> parameters
    published: dict  # (first word of the name, n) -> error rate


def forests(max_features, **patches):
    """MORF with and without bootstrap for each name's patches, then SPORF and RF.

    The first is the paper's setting. RF and SPORF come from this library's engine.
    """
    found = {}
    for name, patch in patches.items():
        label = f"MORF, {name}" if name != "paper" else "MORF"
        found[label] = {"dictionary": patch, "max_features": max_features}
        found[f"{label}, no bootstrap"] = {**found[label], "bootstrap": False}
    found["SPORF"] = {"dictionary": SparseOblique(), "max_features": "sqrt"}
    found["RF"] = {"dictionary": Axis(), "max_features": "sqrt"}
    return found


CIRCLE_PATCH = Patch(min_size=3, max_size=12)
CIRCLE_WRAP = Patch(min_size=3, max_size=12, boundary="wrap")
CIRCLE_PUBLISHED = {
    ("MORF", 200): 0.126,
    ("MORF", 2000): 0.037,
    ("SPORF", 2000): 0.391,
    ("RF", 2000): 0.391,
}

SIMULATIONS = {
    # The text: segments may continue past the end of the circle.
    "A": Simulation(
        make_circle, forests(0.5, paper=CIRCLE_PATCH, wrap=CIRCLE_WRAP), CIRCLE_PUBLISHED
    ),
    # What the authors ran, and the published figures belong to: they never do.
    "A-line": Simulation(
        partial(make_circle, wrap=False), forests(0.5, paper=CIRCLE_PATCH), CIRCLE_PUBLISHED
    ),
    "B": Simulation(
        make_bars,
        forests("sqrt", paper=Patch(min_size=(2, 2), max_size=(2, 9))),
        {("MORF", 200): 0.001, ("MORF", 2000): 0.0005, ("RF", 200): 0.001},
    ),
    "C": Simulation(
        make_impulse,
        forests(0.3, paper=Patch(min_size=2, max_size=12)),
        {
            ("MORF", 200): 0.142,
            ("MORF", 2000): 0.131,
            ("SPORF", 2000): 0.135,
            ("RF", 2000): 0.142,
        },
    ),
}


def error_rate(simulation, forest, n, repeat, jobs):
    """Test error of one forest, grown and tested on the samples of one repeat."""
    X, y = simulation.make(n, random_state=2 * repeat)
    X_test, y_test = simulation.make(TEST_SAMPLES, random_state=2 * repeat + 1)
    model = MorfClassifier(
        n_estimators=TREES, n_jobs=jobs, random_state=repeat, **simulation.forests[forest]
    )
    return float(np.mean(model.fit(X, y).predict(X_test) != y_test))


def verdict(errors, published):
    """Whether the mean error is at most the published one; if not, whether chance may be why."""
    if published is None:
        return "-"
    excess = statistics.mean(errors) - published
    if excess <= 0:
        return "yes"
    near = excess <= 2 * results.standard_error(errors)
    return "no, but within 2 standard errors" if near else "no"


def run(names, sizes, repeats, jobs, sheet):
    versions = {
        "library": "morforest",
        "python": platform.python_version(),
        "library_version": importlib.metadata.version("morforest"),
        "scikit_learn": sklearn.__version__,
        "numpy": np.__version__,
    }
    lines = []
    for name in names:
        simulation = SIMULATIONS[name]
        for n in sizes:
            for forest in simulation.forests:
                errors = []
                for repeat in range(repeats):
                    errors.append(error_rate(simulation, forest, n, repeat, jobs))
                    sheet.add(
                        **versions,
                        simulation=name,
                        forest=forest,
                        n=n,
                        trees=TREES,
                        repeat=repeat,
                        error=errors[-1],
                    )
                published = simulation.published.get((forest.split(",")[0], n))
                met = verdict(errors, published)
                mean = results.mean_and_error(errors)
                lines.append([name, n, forest, mean, "-" if published is None else published, met])
                print(*lines[-1], sep="  ", file=sys.stderr, flush=True)
    results.publish(
        sheet.path.with_suffix(".md"),
        "The paper's simulations",
        f"{TREES} trees; test error on {TEST_SAMPLES:,} samples, mean ± standard error over "
        f"{repeats} repeats with fresh data. Met: the mean is at most the published rate. A-line "
        "is A without segments that continue past the end, as the authors ran it.",
        sheet.rows,
        ["simulation", "n", "forest", "error", "published", "met"],
        lines,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=SIMULATIONS, default=list(SIMULATIONS))
    add("--repeats", type=int, help="default: 10, with --quick 2")
    add("--quick", action="store_true", help="n = 200 only, two repeats")
    add("--jobs", type=int, default=-1, help="threads; the results do not depend on them")
    add("--out", type=Path, help="folder of the result files; default: as of bench.py")
    args = parser.parse_args()
    sheet = results.Sheet(args.out or results.folder(args.quick), "simulations", results.machine())
    sizes = SIZES[:1] if args.quick else SIZES
    repeats = args.repeats or (2 if args.quick else 10)
    run(dict.fromkeys(args.only), sizes, repeats, args.jobs, sheet)


if __name__ == "__main__":
    main()
