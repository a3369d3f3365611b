"""What this library adds to the paper's forests, each estimator under one name.

A name says all that is chosen: the kind of estimator, the name of its dictionary if one is given,
and whether it also learns from copies. Everything else is a default, such as 500 trees or rounds.
"""

from experiments import models
from experiments.simulations import fit_and_test
from morforest import (
    AtomRidgeClassifier,
    ImageCopies,
    MorfBoostingClassifier,
    MorfClassifier,
    Patch,
)

KINDS = {
    "forest": MorfClassifier,
    "boosting": MorfBoostingClassifier,
    "ridge": AtomRidgeClassifier,
}
# This is not a name of the library but the guide's example for data that are known to wrap.
WRAPPING = "forest wrapping"
DICTIONARIES = {"wrapping": Patch(max_size=0.5, boundary="wrap", pool="max", window=1.0)}
COPIES = {"": {}, "copies": {"augment": ImageCopies()}}
PEER = "RF (scikit-learn)"


def ours(name: str) -> bool:
    """Return whether an estimator belongs to this module; the paper's own, MORF too, are peers."""
    return name.split()[0] in KINDS


def make(name: str, seed: int, channel_axis: int | None = None) -> models.Classifier:
    """Return an unfitted classifier of that name, for samples in their shape."""
    kind, _, rest = name.partition(" ")
    dictionary, _, copies = rest.partition(" + ")
    if kind not in KINDS or copies not in COPIES:
        raise ValueError(f"name must be KIND, KIND DICTIONARY or KIND DICTIONARY + copies: {name}")
    return models.Classifier(
        KINDS[kind](
            DICTIONARIES.get(dictionary, dictionary or None),
            channel_axis=channel_axis,
            n_jobs=1,
            random_state=seed,
            **COPIES[copies],
        )
    )


def measure(name, seed, X, y, X_test, y_test, channel_axis=None):
    """Return the row of one fit: test error, times, size of the trees."""
    model = make(name, seed, channel_axis)
    return {"seed": seed, **fit_and_test(model, X, y, X_test, y_test)}


def with_loss(rows, loss=lambda row: row["error"]):
    """Add to the rows a loss, which all studies have in common: the lower, the better."""
    return [{**row, "loss": loss(row)} for row in rows]
