"""What the dictionaries and estimators beyond the paper cost, beside plain MORF.

    python -m benchmarks.beyond [--mnist mnist.npz | --stand-in] [--quick]

It measures CPU-seconds of fits in one thread, as the least of the repeats, in which all fits take
turns; the elapsed seconds of boosting in one and two threads; what `"auto"` adds to a fit; and what
named dictionaries for series cost to fit and to predict.
"""

import time

import numpy as np

from benchmarks import options
from benchmarks.results import Sheet, run_facts
from measuring import arrays
from measuring.files import write_whole
from measuring.tables import markdown
from morforest import MorfBoostingClassifier, MorfClassifier, Patch, Subset
from morforest.datasets import make_bars, make_impulse
from morforest.dictionary._presets import choose_dictionary

NOTE = """\
*plain* is MORF with patches of 2 x 2 to 2 x 5. *at each node* draws the atoms of `"image"` anew at
each node. *300 per tree* is `"image"` itself, a `Subset` of these atoms. All have 28 candidates per
node."""


def dictionaries():
    image = choose_dictionary("image", (28, 28), None)
    return {
        "plain": Patch((2, 2), (2, 5)),
        "image, at each node": image.dictionary,
        "image, 300 per tree": Subset(image.dictionary, image.n_atoms),
    }


def least(repeats, models, X, y):
    """Return the least CPU-seconds of fitting each of several models, which take turns."""
    times = {name: [] for name in models}
    for _ in range(repeats):
        for name, model in models.items():
            start = time.process_time()
            model.fit(X, y)
            times[name].append(time.process_time() - start)
    return {name: min(found) for name, found in times.items()}


def forest(dictionary, trees=500):
    return MorfClassifier(dictionary, n_estimators=trees, n_jobs=1, random_state=0)


def forests(X, y, sheet, name, sizes, repeats):
    lines = []
    for n, trees in sizes:
        models = {kind: forest(dictionary, trees) for kind, dictionary in dictionaries().items()}
        found = least(repeats, models, X[:n], y[:n])
        for kind, cpu in found.items():
            sheet.add(data=name, work=f"forest, {kind}", rows=n, trees=trees, cpu=cpu, wall="")
        cells = [f"{cpu:.2f} ({cpu / found['plain']:.1f})" for cpu in found.values()]
        lines.append([f"{n:,}", str(trees), *cells])
    return markdown(("images", "trees", *(f"{k}, CPU-s" for k in dictionaries())), lines).rstrip()


def boosting(X, y, sheet, name, sizes):
    lines = []
    for n, rounds in sizes:
        cells = []
        for jobs in (1, 2):
            model = MorfBoostingClassifier("image", max_iter=rounds, n_jobs=jobs, random_state=0)
            wall, cpu = time.perf_counter(), time.process_time()
            model.fit(X[:n], y[:n])
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            work = f"boosting, {jobs} threads"
            sheet.add(data=name, work=work, rows=n, trees=rounds, cpu=cpu, wall=wall)
            cells += [f"{cpu:.1f}", f"{wall:.1f}"]
        lines.append([f"{n:,}", str(rounds), *cells])
    heads = [f"{jobs}: {what}" for jobs in ("one thread", "two threads") for what in ("CPU-s", "s")]
    return markdown(("images", "rounds", *heads), lines).rstrip()


def choosing(sheet, sizes, repeats):
    lines = []
    for kind, make in (("impulse", make_impulse), ("bars", make_bars)):
        for n in sizes:
            X, y = make(n, random_state=0)
            scores = forest("auto").fit(X, y).dictionary_scores_
            best = max(scores, key=scores.get)
            found = least(repeats, {name: forest(name) for name in ("auto", best)}, X, y)
            for name, cpu in found.items():
                sheet.add(data=kind, work=f"forest, {name}", rows=n, trees=500, cpu=cpu, wall="")
            whole, alone = found["auto"], found[best]
            numbers = (f"{alone:.3f}", f"{whole:.3f}", f"{whole / alone:.2f}")
            lines.append([kind, f"{n:,}", best, *numbers])
    heads = ("data", "samples", "picked", "its fit, CPU-s", '"auto", CPU-s', "ratio")
    return markdown(heads, lines).rstrip()


def series(sheet, lengths, repeats):
    """Time fits and predictions of forests on series of several lengths."""
    lines = []
    for length in lengths:
        X, y, X_test = impulses(length)
        for name in ("patch", "series", "series-pooled"):
            model = forest(name)
            fit = least(repeats, {name: model}, X, y)[name]
            times = []
            for _ in range(repeats):
                start = time.process_time()
                model.predict_proba(X_test)
                times.append(time.process_time() - start)
            sheet.add(
                data=f"impulse, {length} steps",
                work=f"forest, {name}, predict",
                rows=len(X_test),
                trees=500,
                cpu=min(times),
                wall="",
            )
            lines.append(
                [str(length), name, f"{fit:.2f}", f"{1000 * min(times) / len(X_test):.2f}"]
            )
    return markdown(("steps", "name", "fit, CPU-s", "predict, CPU-ms per sample"), lines).rstrip()


def impulses(length, rows=200, test_rows=500):
    """Return noise, half of which has an impulse after a fifth of the time."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows + test_rows, length))
    y = np.arange(len(X)) % 2
    X[y == 1, length // 5 :] += np.exp(-0.1 * np.arange(length - length // 5))
    return X[:rows], y[:rows], X[rows:]


def main():
    quick, output, name, path = options.read(__doc__)
    X, y, _, _ = arrays.load(path)
    X = X.reshape(-1, 28, 28)
    run = run_facts()
    sheet = Sheet(output, "beyond", run)
    parts = [
        f"# The cost of what lies beyond the paper\n\n{NOTE}\n\n"
        "`{command}`, {date}, {cpu_model}, {cores} cores, load {load_at_start} at the "
        "start.".format_map(run),
        "## Forests\n\nNumbers in brackets are multiples of the plain forest's time.",
        forests(
            X,
            y,
            sheet,
            name,
            [(500, 20)] if quick else [(1000, 500), (10_000, 100)],
            1 + 2 * (not quick),
        ),
        f"## Boosting on {name}",
        boosting(X, y, sheet, name, [(500, 20)] if quick else [(10_000, 200), (len(X), 500)]),
        '## What "auto" adds\n\n500 trees, as by default.',
        choosing(sheet, (100,) if quick else (200, 1000, 5000), 1 + 2 * (not quick)),
        "## Named dictionaries for series\n\n"
        "500 trees, grown on 200 series of noise, half of which have an impulse.",
        series(sheet, (50,) if quick else (100, 500), 1 + 2 * (not quick)),
    ]
    text = "\n\n".join(parts) + "\n"
    write_whole(output / "beyond.md", text)
    print(text)


if __name__ == "__main__":
    main()
