"""What more or fewer iterations change on MNIST, where the paper is unclear about their number.

XGBoost has 10 rounds in the paper's table, "all default", and 100 in the defaults of its
classifier. Logistic regression has scikit-learn's 100, which are not always enough to converge.
"""

from pathlib import Path

from experiments import mnist, models, published, simulations
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
XGBOOST, LOGISTIC = "XGBoost", "logistic regression"
LIMIT = {XGBOOST: "n_estimators", LOGISTIC: "max_iter"}
# Classifier, images, iterations, repeats, CPU-seconds.
SETTINGS = (
    (LOGISTIC, 1000, 100, 2, 2),
    (LOGISTIC, 5000, 100, 2, 5),
    (LOGISTIC, 5000, 1000, 2, 9),
    (XGBOOST, 60_000, 10, 1, 40),
)
QUICK_LARGEST = 1000


def tasks(quick):
    mnist.images()  # fails before any work if data are missing
    return [
        Task(STUDY, {"classifier": name, "n": n, "limit": limit, "repeat": repeat}, cost)
        for name, n, limit, repeats, cost in SETTINGS
        if not quick or n <= QUICK_LARGEST
        for repeat in range(1 if quick else repeats)
    ]


def run(task):
    name, n, repeat = task.key["classifier"], int(task.key["n"]), int(task.key["repeat"])
    X, y, X_test, y_test = mnist.images()
    rows = mnist.chosen(y, n, repeat)
    model = models.make(name, mnist.DATA, (28, 28), 10, n, seed=repeat, threads=1)
    model.set_params(**{f"model__{LIMIT[name]}": int(task.key["limit"])})
    found = simulations.fit_and_test(model, X[rows], y[rows], X_test, y_test)
    needed = model.model_.n_iter_.max() if name == LOGISTIC else task.key["limit"]
    return {
        "seed": repeat,
        "iterations": int(needed),
        **{key: found[key] for key in ("error", "train_seconds", "test_seconds")},
    }


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    # The fits with 100 rounds are those of the study of MNIST.
    rows += [
        {**row, "limit": 100, "iterations": 100}
        for row in read(csvs, mnist.STUDY)
        if row["classifier"] == XGBOOST
    ]
    lines = []
    for key in (*(setting[:3] for setting in SETTINGS), (XGBOOST, 60_000, 100)):
        name, n, limit = key
        found = [row for row in rows if (row["classifier"], row["n"], row["limit"]) == key]
        if not found:
            continue
        needed = sorted({row["iterations"] for row in found})
        shown = f"{needed[0]}" if len(needed) == 1 else f"{needed[0]} to {needed[-1]}"
        rate = published.errors(mnist.DATA).get(name, {}).get(n)
        error = tables.rate_and_error([row["error"] for row in found])
        lines.append([name, f"{n:,}", limit, shown, error, tables.rate(rate) if rate else ""])
    header = ["", "images", "at most", "iterations", "test error", "published"]
    write_whole(Path(csvs) / "iterations.md", tables.markdown(header, lines))
