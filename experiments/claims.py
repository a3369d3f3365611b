"""Which of the paper's claims hold in our rows; results/claims.md lists them claim by claim.

    python -m experiments.claims            from the full results
    python -m experiments.claims --quick    from the quick ones, whose sizes are not the paper's

1. The mean error of MORF is at or below the authors' published one at every n on A, B, C and MNIST,
   within one standard error of ours.
2. MORF's trees are smaller than those of RF and SPORF on A to E: in leaves, height and mean depth
   of a leaf.
3. MORF beats all methods that are not convolutional on A, B (small n), C, D, E and MNIST.
4. MORF takes slightly longer than SPORF in training and in testing, and ConvNets noticeably longer
   than both.

A second table holds the same contests against paired tests with intervals: against the best other
method, and against each of the others.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from experiments import published, stats, style, verdicts
from experiments.simulations import VARIANTS
from experiments.store import folder, read
from measuring import tables
from measuring.files import write_whole

OURS = "MORF"
CONVOLUTIONAL = ("ConvNet",)
PUBLISHED = ("A-line", "B", "C", "MNIST")
SIMULATED = ("A-line", "A", "B", "C", "D", "E")
CONTESTS = ("A-line", "A", "B", "C", "D", "E", "MNIST")
# Where single pixels are enough and every method is right, there is nothing to beat.
SMALL = {"B": 100}
YES, NEAR, NO = "yes", "within one standard error", "**no**"
OPEN = "undecided"
SLIGHTLY = 1.5  # times the seconds; more is noticeably longer
LEAST = 1e-3  # shorter CPU times are not measurable
SECONDS = {"train_seconds": "training", "test_seconds": "testing"}


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


def smaller(measure):
    """Return the function that compares MORF's trees with RF's and SPORF's by a measure."""

    def compare(rows):
        lines = []
        for data in SIMULATED:
            for n in sizes(rows, data):
                found = [by_repeat(rows, data, n, name, measure) for name in style.FORESTS]
                if all(found):
                    means = [float(np.mean(list(values.values()))) for values in found]
                    met = YES if means[0] < min(means[1:]) else NO
                    lines.append([data, f"{n:,}", *(f"{mean:.1f}" for mean in means), met])
        return ["data", "n", *style.FORESTS, "smallest: MORF"], lines

    return compare


def rivals(rows):
    return sorted({row["classifier"] for row in rows} - {OURS, *CONVOLUTIONAL, *VARIANTS})


def contests(rows):
    """Compare MORF with the best of the others, on the same samples."""
    lines = []
    names = rivals(rows)
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


def tests(rows):
    """Test MORF against every other method, on the same samples: paired t-tests."""
    lines = []
    names = rivals(rows)
    for data in CONTESTS:
        for n in sizes(rows, data):
            ours = by_repeat(rows, data, n, OURS)
            found, single = {}, 0
            for name in names:
                theirs = by_repeat(rows, data, n, name)
                both = sorted(ours.keys() & theirs.keys())
                single += len(both) == 1
                if len(both) > 1:
                    # Scores are better when they are higher, so signs are turned.
                    pair = [[-values[repeat] for repeat in both] for values in (ours, theirs)]
                    found[name] = verdicts.difference(*pair)
            if not found or n > SMALL.get(data, n):
                continue
            adjusted = stats.holm([gap.p for gap in found.values()])
            firm = [
                gap.verdict if p < stats.LEVEL else verdicts.NOISE
                for gap, p in zip(found.values(), adjusted, strict=True)
            ]
            best = min(found, key=lambda name: found[name].mean)
            gap, p = found[best], adjusted[list(found).index(best)]
            counts = [firm.count(w) for w in (verdicts.BETTER, verdicts.NOISE, verdicts.WORSE)]
            answer = YES if counts[0] == len(found) + single else NO if counts[2] else OPEN
            low, high = -gap.mean - gap.half, -gap.mean + gap.half
            interval = f"{-gap.mean:+.4f} [{low:+.4f}, {high:+.4f}]"
            lines.append([data, f"{n:,}", best, interval, f"{p:.3f}", *counts, single, answer])
    header = ["data", "n", "best other", "MORF less it [95 %]", "p, Holm"]
    header += ["lower than", "undecided", "higher than", "not tested"]
    return [*header, "MORF is lowest"], lines


def longer(name, other, low, high):
    """Return the function that judges whether one method takes `low` to `high` times as long.

    Ratios are geometric means over repeats, since a ratio and its inverse should weigh the same.
    """

    def compare(rows):
        lines = []
        for data in CONTESTS:
            for n in sizes(rows, data):
                for measure, word in SECONDS.items():
                    a, b = (by_repeat(rows, data, n, key, measure) for key in (name, other))
                    both = sorted(a.keys() & b.keys())
                    logs = [math.log(max(a[r], LEAST) / max(b[r], LEAST)) for r in both]
                    if not logs:
                        continue
                    below, above = math.log(low) - np.array(logs), np.array(logs) - math.log(high)
                    met = verdict(max(below, above, key=np.mean))
                    ratio = f"{math.exp(np.mean(logs)):.2f}"
                    lines.append([f"{data}, {word}", f"{n:,}", ratio, met])
        return ["data", "n", f"{name} / {other}", f"{low:g} to {high:g}"], lines

    return compare


def difference(excess):
    error = tables.standard_error(list(excess))
    return f"{np.mean(excess):+.4f}" + ("" if math.isnan(error) else f" ± {error:.4f}")


TREES = {
    "leaves": ("Fewer leaves than RF and SPORF", smaller("leaves")),
    "height": ("Lower trees than RF and SPORF", smaller("height")),
    "depth": ("Leaves less deep than those of RF and SPORF", smaller("leaf_depth")),
}
TIMES = {
    "slightly": ("Slightly longer than SPORF", longer(OURS, "SPORF", 1, SLIGHTLY)),
    "noticeably": ("ConvNet noticeably longer", longer("ConvNet", OURS, SLIGHTLY, math.inf)),
}
CLAIMS = {
    "published": ("At or below the authors' published error", against_published),
    **TREES,
    "contests": ("Lower error than every method that is not convolutional", contests),
    **TIMES,
}
ERRORS = ("published", "contests")


def summary(contents, keys=ERRORS):
    lines = []
    for key in keys:
        title, found = CLAIMS[key][0], contents[key][1]
        for data in dict.fromkeys(line[0] for line in found):
            met = [line[-1] for line in found if line[0] == data]
            counts = [met.count(answer) for answer in (YES, NEAR, NO)]
            missed = [line[1] for line in found if line[0] == data and line[-1] == NO]
            lines.append([title, data, len(met), *counts, ", ".join(missed)])
    return ["claim", "data", "sizes", "yes", NEAR, "no", "missed at n ="], lines


def times_summary(contents):
    """Return the smallest and the largest ratio of each data set, and where the claim holds."""
    lines = []
    for place in dict.fromkeys(line[0] for line in contents["slightly"][1]):
        cells = []
        for key in TIMES:
            found = [line for line in contents[key][1] if line[0] == place]
            ratios = sorted((line[2] for line in found), key=float)
            met = [line[1] for line in found if line[-1] != NO]
            shown = "all" if len(met) == len(found) else ", ".join(met) or "none"
            cells += [f"{ratios[0]} to {ratios[-1]}" if ratios else "", shown]
        lines.append([place, *cells])
    header = ["", "MORF / SPORF", "slightly longer at n =", "ConvNet / MORF"]
    return [*header, "noticeably longer at n ="], lines


def times_verdict(contents):
    """Say in sentences how long MORF takes beside SPORF, over all data sets and sizes."""
    lines = []
    for word in SECONDS.values():
        ratios = [float(line[2]) for line in contents["slightly"][1] if line[0].endswith(word)]
        if ratios:
            less = sum(ratio < 1 for ratio in ratios)
            lines.append(
                f"- In {word}, MORF takes {min(ratios):.2f} to {max(ratios):.2f} times the "
                f"CPU-seconds of SPORF, and less at {less} of {len(ratios)} sizes.\n"
            )
    return "".join(lines)


def tests_summary(found):
    """Count the contests by what their tests say."""
    lines = []
    for data in dict.fromkeys(line[0] for line in found):
        of = [line for line in found if line[0] == data]
        places = {answer: [line[1] for line in of if line[-1] == answer] for answer in (YES, NO)}
        undecided = [line[1] for line in of if line[-1] == OPEN]
        lines.append([data, *(", ".join(p) for p in (places[YES], undecided, places[NO]))])
    return ["data", "lower than all others at n =", "undecided at", "higher than some at"], lines


def write(csvs):
    """Write the tables, claim by claim, and a summary."""
    rows = load(csvs)
    if not rows:
        return
    contents = {key: make(rows) for key, (_, make) in CLAIMS.items()}
    tested = tests(rows)
    write_whole(csvs / "claims-summary.md", tables.markdown(*summary(contents)))
    write_whole(csvs / "claims-trees.md", tables.markdown(*summary(contents, TREES)))
    write_whole(csvs / "claims-times.md", tables.markdown(*times_summary(contents)))
    write_whole(csvs / "claims-times-verdict.md", times_verdict(contents))
    parts = ["# The paper's claims in our rows", tables.markdown(*summary(contents, CLAIMS))]
    for key, (title, _) in CLAIMS.items():
        parts += [f"## {title}", tables.markdown(*contents[key])]
        write_whole(csvs / f"claims-{key}.md", tables.markdown(*contents[key]))
    parts += ["## Contests, tested", tables.markdown(*tested)]
    write_whole(csvs / "claims-tests.md", tables.markdown(*tested))
    write_whole(csvs / "claims-tests-summary.md", tables.markdown(*tests_summary(tested[1])))
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
