"""What is compared.

In each section every library has its turn before the next repeat begins, so that a slow minute
of the machine falls on all of them alike.
"""

import statistics
import sys

from results import mean_and_error, median_and_range

OURS = "morforest"
PATCH = (2, 5)  # the largest; the smallest is 2 x 2 everywhere
TREES = 100


def fit(clients, sheet, plan):
    """MNIST: CPU seconds to grow 100 trees, and the accuracy they bought."""
    for n in plan.sizes:
        for seed in range(max(plan.seeds_for(client.library, n) for client in clients)):
            for client in clients:
                if seed >= plan.seeds_for(client.library, n):
                    continue
                grown = client("fit", n=n, trees=TREES, patch=PATCH, seed=seed)
                scored = client("score")
                sheet.add(
                    **_who(client),
                    n=n,
                    trees=TREES,
                    seed=seed,
                    fit_cpu_seconds=grown["cpu"],
                    fit_wall_seconds=grown["wall"],
                    predict_cpu_seconds=scored["cpu"],
                    accuracy=scored["accuracy"],
                )
                _say(f"fit n={n} seed={seed} {client.library}: {grown['cpu']:.2f} CPU-seconds")

    lines = []
    for n in plan.sizes:
        ours = sheet.select("fit_cpu_seconds", library=OURS, n=n)
        for client in clients:
            seconds = sheet.select("fit_cpu_seconds", library=client.library, n=n)
            if not seconds:
                continue
            predict = sheet.select("predict_cpu_seconds", library=client.library, n=n)
            accuracy = sheet.select("accuracy", library=client.library, n=n)
            lines.append(
                [
                    n,
                    client.library,
                    len(seconds),
                    median_and_range(seconds, 2),
                    _times_ours(seconds, ours),
                    median_and_range(predict),
                    mean_and_error(accuracy),
                ]
            )
    sheet.publish(
        "Growing a forest on MNIST",
        f"{TREES} trees, one thread, 28 candidates a node, patches 2x2 to 2x5, the first n "
        "training images. CPU-seconds: median (lowest - highest) over the seeds; the factor "
        "is the median over the seeds that both ran. Accuracy on all test images: mean ± "
        "standard error over the seeds.",
        ["n", "library", "seeds", "fit", "x morforest", "predict all test images", "accuracy"],
        lines,
    )


def area(clients, sheet, plan):
    """MNIST: what a larger patch costs, as a multiple of 2 x 2."""
    n, trees, largest = 5000, 20, [(2, 2), (5, 5), (14, 14)]
    clients = [client for client in clients if client.library != "scikit-learn"]
    for seed in range(plan.seeds):
        for patch in largest:
            for client in clients:
                seconds = client("fit", n=n, trees=trees, patch=patch, seed=seed)
                sheet.add(
                    **_who(client),
                    n=n,
                    trees=trees,
                    seed=seed,
                    largest_patch=_size(patch),
                    fit_cpu_seconds=seconds["cpu"],
                    fit_wall_seconds=seconds["wall"],
                )
                _say(f"area {_size(patch)} seed={seed} {client.library}: {seconds['cpu']:.2f}")

    lines = []
    for client in clients:
        base = sheet.select("fit_cpu_seconds", library=client.library, largest_patch="2x2")
        for patch in map(_size, largest):
            seconds = sheet.select("fit_cpu_seconds", library=client.library, largest_patch=patch)
            ratios = [a / b for a, b in zip(seconds, base, strict=True)]
            lines.append(
                [client.library, patch, median_and_range(seconds), median_and_range(ratios, 2)]
            )
    sheet.publish(
        "The cost of large patches",
        f"{trees} trees on the first {n} MNIST images, one thread, 28 candidates a node, "
        f"patches from 2x2 to the size named, {plan.seeds} interleaved repeats. CPU-seconds "
        "and the ratio to 2x2 within a repeat: median (lowest - highest).",
        ["library", "patches up to", "fit", "ratio to 2x2"],
        lines,
    )


def predict(clients, sheet, plan):
    """MNIST: predict_proba of many rows and of one."""
    n, rounds, calls_a_round = 5000, 5, {10_000: 1, 1: 40}
    seconds = {(client, rows): [] for rows in calls_a_round for client in clients}
    for client in clients:
        client("fit", n=n, trees=TREES, patch=PATCH, seed=0)
    for _ in range(rounds):
        for rows, calls in calls_a_round.items():
            for client in clients:
                seconds[client, rows] += client("predict", rows=rows, calls=calls)
    for (client, rows), calls in seconds.items():
        cpu, wall = (statistics.median(call[clock] for call in calls) for clock in ("cpu", "wall"))
        sheet.add(
            **_who(client),
            n=n,
            trees=TREES,
            rows=rows,
            calls=len(calls),
            median_cpu_seconds=cpu,
            median_wall_seconds=wall,
        )
        _say(f"predict {rows} rows {client.library}: {1000 * wall:.3f} ms")

    lines = []
    for client, rows in seconds:
        (calls,) = sheet.select("calls", library=client.library, rows=rows)
        cpu = sheet.select("median_cpu_seconds", library=client.library, rows=rows)
        wall = sheet.select("median_wall_seconds", library=client.library, rows=rows)
        ours = sheet.select("median_wall_seconds", library=OURS, rows=rows)
        times = _times_ours(wall, ours)
        lines.append([rows, client.library, calls, _ms(cpu[0]), _ms(wall[0]), times])
    sheet.publish(
        "predict_proba",
        f"{TREES} trees grown on the first {n} MNIST images, patches 2x2 to 2x5, one thread. "
        f"Medians over calls made in {rounds} interleaved rounds; the first call of a round "
        "is not counted. The factor compares wall-clock times.",
        ["rows", "library", "calls", "CPU ms", "wall ms", "x morforest"],
        lines,
    )


def pickle(clients, sheet, plan):
    """MNIST: the size of a pickled forest."""
    n = 1000
    for client in clients:
        client("fit", n=n, trees=TREES, patch=PATCH, seed=0)
        size = client("pickle_size")
        sheet.add(**_who(client), n=n, trees=TREES, pickle_bytes=size)
        _say(f"pickle {client.library}: {size} bytes")

    ours = sheet.select("pickle_bytes", library=OURS)
    lines = []
    for client in clients:
        size = sheet.select("pickle_bytes", library=client.library)
        lines.append([client.library, f"{size[0] / 1e6:.2f}", _times_ours(size, ours)])
    sheet.publish(
        "The size of a pickle",
        f"{TREES} trees grown on the first {n} MNIST images, patches 2x2 to 2x5, protocol 5.",
        ["library", "MB (10^6 bytes)", "x morforest"],
        lines,
    )


SECTIONS = {"fit": fit, "area": area, "predict": predict, "pickle": pickle}


def _who(client):
    return {"library": client.library, **client.versions}


def _times_ours(theirs, ours):
    """How many times ours: the median over the repeats that both made."""
    ratios = [a / b for a, b in zip(theirs, ours, strict=False)]
    return f"{statistics.median(ratios):.2f}" if ratios else "-"


def _size(patch):
    return "x".join(map(str, patch))


def _ms(seconds):
    return f"{1000 * seconds:.3f}"


def _say(text):
    print(text, file=sys.stderr, flush=True)
