"""The simulations A to D beyond the paper: dictionaries by name, and boosting.

Samples, repeats and tests are those of the study `simulations`, whose rows are the peers.
"""

from pathlib import Path

from experiments import beyond, simulations, style
from experiments.simulations import SIMULATIONS, error_table
from experiments.store import Task, read
from measuring.figures import plt, save
from measuring.files import write_whole

STUDY = Path(__file__).stem
SIZES = (50, 200)
QUICK_REPEATS = 1
SERIES = (
    "forest patch",
    "forest series",
    "forest series-pooled",
    "forest auto",
    "boosting series",
    "boosting auto",
)
IMAGES = ("forest patch", "forest image", "forest auto", "boosting image", "boosting auto")
CLASSIFIERS = {"A": (*SERIES, beyond.WRAPPING), "B": IMAGES, "C": SERIES, "D": SERIES}
CHANNEL_AXIS = {"D": 1}  # three coupled quantities, one per row
# Rough CPU-seconds of a fit to 1,000 rows and of predicting 10,000; a second each for all others.
COSTS = {
    "forest series": (4.0, 3.0),
    "forest series-pooled": (6.0, 4.0),
    "forest auto": (6.0, 3.0),
    "boosting series": (6.0, 3.0),
    "boosting auto": (6.0, 3.0),
}
PEERS = ("MORF", simulations.WRAPPING, simulations.SHORT, "RF", "ConvNet")


def tasks(quick):
    tested = simulations.QUICK_TEST_SAMPLES if quick else simulations.TEST_SAMPLES
    return [
        Task(
            STUDY,
            {
                "data": data,
                "n": n,
                "classifier": classifier,
                "repeat": repeat,
                "test_samples": tested,
            },
            cost(classifier, n, tested),
        )
        for data, classifiers in CLASSIFIERS.items()
        for n in (simulations.QUICK_SIZES if quick else SIZES)
        for classifier in classifiers
        for repeat in range(QUICK_REPEATS if quick else simulations.REPEATS)
    ]


def cost(classifier, n, tested):
    fit, predict = COSTS.get(classifier, (1.0, 1.0))
    return round(0.3 + fit * n / 1000 + predict * tested / 10_000, 3)


def run(task):
    data, classifier = task.key["data"], task.key["classifier"]
    n, repeat, tested = (int(task.key[name]) for name in ("n", "repeat", "test_samples"))
    samples = simulations.samples(data, n, repeat, tested)
    return beyond.measure(classifier, repeat, *samples, channel_axis=CHANNEL_AXIS.get(data))


def rows(csvs):
    """Return our rows, and those of the peers at our sizes; none without ours."""
    found = read(csvs, STUDY)
    places = {(row["data"], row["n"]) for row in found}
    peers = [row for row in read(csvs, simulations.STUDY) if (row["data"], row["n"]) in places]
    return beyond.with_loss([*found, *peers])


def figures(csvs, pngs):
    found = rows(csvs)
    names = [name for name in CLASSIFIERS if any(row["data"] == name for row in found)]
    if not names:
        return
    figure, panels = plt.subplots(
        1,
        len(names),
        figsize=(style.WIDEST * len(names) / 4, 4.6),
        layout="constrained",
        squeeze=False,
    )
    for axes, name in zip(panels[0], names, strict=True):
        of_data = [row for row in found if row["data"] == name]
        write_whole(Path(csvs) / f"beyond-{name}.md", error_table(of_data, {}))
        drawn = (*CLASSIFIERS[name], *PEERS)
        style.draw_dots(
            axes, [row for row in of_data if row["classifier"] in drawn], "n", "error", drawn
        )
        axes.set(xlabel="training samples")
        if name in simulations.NEAR_ZERO:
            style.log_errors(axes)
        else:
            axes.set_ylim(0, None)
        axes.set_title(SIMULATIONS[name].title, weight="bold", fontsize=9)
    panels[0][0].set_ylabel("test error, mean ± standard error")
    style.legend(figure, panels[0])
    save(figure, Path(pngs) / "beyond-simulations.png")
