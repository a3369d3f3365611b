"""Which of the paper's claims hold in our rows; results/claims.md lists them claim by claim.

    python -m experiments.claims            from the full results
    python -m experiments.claims --quick    from the quick ones, whose sizes are not the paper's

1. The mean error of MORF is at or below the authors' published one at every n on A, B, C and MNIST,
   within one standard error of ours.
2. MORF needs fewer leaves than RF and SPORF on A, B and C.
3. MORF beats all methods that are not convolutional on A, B (small n), C, D, E and MNIST.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from experiments import published, style
from experiments.simulations import VARIANTS
from experiments.store import folder, read
from measuring import tables
from measuring.files import write_whole

OURS = "MORF"
CONVOLUTIONAL = ("ConvNet",)
PUBLISHED = ("A-line", "B", "C", "MNIST")
LEAVES = ("A-line", "A", "B", "C")
CONTESTS = ("A-line", "A", "B", "C", "D", "E", "MNIST")
# Where single pixels are enough and every method is right, there is nothing to beat.
SMALL = {"B": 100}
YES, NEAR, NO = "yes", "within one standard error", "**no**"


def load(csvs):
    return [*read(csvs, "simulations"), *read(csvs, "mnist")]


def by_repeat(rows, data, n, classifier, measure="error"):
    """Return the values of a measure by repeat."""
    wanted = (data, n, classifier)
    return {
        row["repeat"]: row[measure]
        for row in rows
        if (row["data"], row["n"], row["classifier"]) == wanted
    }


def verdict(excess):
    """Judge values that should be at or below zero on average."""
    mean = float(np.mean(excess))
    if mean <= 0:
        return YES
    return NEAR if mean <= tables.standard_error(list(excess)) else NO


def sizes(rows, data):
    return sorted({row["n"] for row in rows if row["data"] == data})


def against_published(rows):
    lines = []
    for data in PUBLISHED:
        for n, rate in published.errors(data)[OURS].items():
            ours = list(by_repeat(rows, data, n, OURS).values())
            if ours:
                found = tables.rate_and_error(ours)
                lines.append(
                    [data, f"{n:,}", tables.rate(rate), found, verdict(np.array(ours) - rate)]
                )
    return ["data", "n", "published", "ours", "at or below"], lines


def leaves(rows):
    lines = []
    for data in LEAVES:
        for n in sizes(rows, data):
            means = []
            for name in style.FORESTS:
                values = list(by_repeat(rows, data, n, name, "leaves").values())
                means.append(float(np.mean(values)) if values else math.nan)
            if not any(map(math.isnan, means)):
                met = YES if means[0] < min(means[1:]) else NO
                lines.append([data, f"{n:,}", *(f"{mean:.1f}" for mean in means), met])
    return ["data", "n", *style.FORESTS, "fewest: MORF"], lines


def contests(rows):
    """Compare MORF with the best of the others, on the same samples."""
    lines = []
    names = sorted({row["classifier"] for row in rows} - {OURS, *CONVOLUTIONAL, *VARIANTS})
    for data in CONTESTS:
        for n in sizes(rows, data):
            ours = by_repeat(rows, data, n, OURS)
            if n > SMALL.get(data, n) or not ours:
                continue
            others = {name: by_repeat(rows, data, n, name) for name in names}
            means = {
                name: np.mean(list(errors.values())) for name, errors in others.items() if errors
            }
            if not means:
                continue
            best = min(means, key=means.get)
            # Only repeats that both have, which have the same samples.
            both = sorted(ours.keys() & others[best].keys())
            excess = np.array([ours[repeat] - others[best][repeat] for repeat in both])
            lines.append(
                [
                    data,
                    f"{n:,}",
                    tables.rate_and_error(list(ours.values())),
                    f"{best} {tables.rate(means[best])}",
                    difference(excess),
                    verdict(excess),
                ]
            )
    return ["data", "n", OURS, "best other", "difference", "MORF is lower"], lines


def difference(excess):
    error = tables.standard_error(list(excess))
    return f"{np.mean(excess):+.4f}" + ("" if math.isnan(error) else f" ± {error:.4f}")


CLAIMS = {
    "published": ("At or below the authors' published error", against_published),
    "leaves": ("Fewer leaves than RF and SPORF", leaves),
    "contests": ("Lower error than every method that is not convolutional", contests),
}


def summary(contents):
    lines = []
    for key, (title, _) in CLAIMS.items():
        _, found = contents[key]
        for data in dict.fromkeys(line[0] for line in found):
            met = [line[-1] for line in found if line[0] == data]
            counts = [met.count(answer) for answer in (YES, NEAR, NO)]
            missed = [line[1] for line in found if line[0] == data and line[-1] == NO]
            lines.append([title, data, len(met), *counts, ", ".join(missed)])
    return ["claim", "data", "sizes", "yes", NEAR, "no", "missed at n ="], lines


def write(csvs):
    """Write the tables, claim by claim, and a summary."""
    rows = load(csvs)
    if not rows:
        return
    contents = {key: make(rows) for key, (_, make) in CLAIMS.items()}
    write_whole(csvs / "claims-summary.md", tables.markdown(*summary(contents)))
    parts = ["# The paper's claims in our rows", tables.markdown(*summary(contents))]
    for key, (title, _) in CLAIMS.items():
        parts += [f"## {title}", tables.markdown(*contents[key])]
        write_whole(csvs / f"claims-{key}.md", tables.markdown(*contents[key]))
    write_whole(csvs / "claims.md", "\n\n".join(parts))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="folder of the results")
    args = parser.parse_args()
    csvs = args.out or folder(args.quick)
    write(csvs)
    if not (csvs / "claims.md").exists():
        sys.exit(f"There are no results in {csvs}; run make paper first.")
    print((csvs / "claims.md").read_text())


if __name__ == "__main__":
    main()
