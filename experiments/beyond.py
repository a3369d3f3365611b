"""What this library adds to the paper's forests, each estimator under one name.

A name says all that is chosen: the kind of estimator, the name of its dictionary if one is given,
and whether it learns from copies too. The rest are defaults, 500 trees or rounds among them.
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
# Not a name of the library: the guide's example for circles, for who knows that the data wrap.
WRAPPING = "forest wrapping"
DICTIONARIES = {"wrapping": Patch(max_size=0.5, boundary="wrap", pool="max", window=1.0)}
COPIES = {"": {}, "copies": {"augment": ImageCopies()}}
PEER = "RF (scikit-learn)"


def ours(name: str) -> bool:
    """Whether an estimator is of this module; the paper's own, MORF too, are its peers."""
    return name.split()[0] in KINDS


def make(name: str, seed: int, channel_axis: int | None = None) -> models.Classifier:
    """A classifier of that name, for samples in their shape, not yet fitted."""
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
    """The row of one fit: test error, times, size of the trees."""
    model = make(name, seed, channel_axis)
    return {"seed": seed, **fit_and_test(model, X, y, X_test, y_test)}


def with_loss(rows, loss=lambda row: row["error"]):
    """The rows with what all studies have in common: the lower the better."""
    return [{**row, "loss": loss(row)} for row in rows]
