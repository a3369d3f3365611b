"""The models with and without each mechanism, by group of data.

Each group begins with the model as the library has it; every other setting changes one thing.
"""

from functools import partial

from sklearn.base import clone

from experiments.series_choice import MINIROCKET
from morforest import (
    AtomRidgeClassifier,
    Axis,
    Difference,
    Gradient,
    Haar,
    ImageCopies,
    Kernel,
    Magnitude,
    Mixture,
    MorfBoostingClassifier,
    MorfClassifier,
    Pair,
    Patch,
    Raw,
    SeriesCopies,
    SharedAtoms,
    SparseOblique,
    Square,
    Subset,
    Variance,
)
from morforest.dictionary._presets import choose_dictionary

TREES = 200
AS_IS = "as it is"


def channel_axis(shape):
    """Return the axis of X with channels: the first axis of a sample with two."""
    return 1 if len(shape) == 2 else None


# --- pooled atoms of series, judged by the ridge classifier ---------------------------------------


def ridge(change=None):
    """Return a function that makes the ridge classifier over pooled atoms, changed in a part."""

    def make(shape):
        return AtomRidgeClassifier(
            pooled(shape, change), channel_axis=channel_axis(shape), n_jobs=1
        )

    return make


def pooled(shape, change=None):
    whole = choose_dictionary("series-pooled", shape, channel_axis(shape)).dictionary
    parts = dict(zip(PARTS, map(clone, whole.dictionaries), strict=True))
    weights = dict(zip(PARTS, whole.weights, strict=True))
    if change is not None:
        parts = change(shape, parts)
    return Mixture(list(parts.values()), weights=[weights[name] for name in parts])


PARTS = ("pairs", "pairs of differences", "intervals", "kernels")


def without(*names):
    return lambda shape, parts: {name: part for name, part in parts.items() if name not in names}


def changed(names=PARTS[:3], **parameters):
    """Return a change of parameters of some parts."""

    def change(shape, parts):
        for name in names:
            parts[name].set_params(**parameters)
        return parts

    return change


COUNTING = {"pool": ["proportion"] * 8 + ["max", "min"], "window": 1.0, "dilation": "log"}


def kernels(*arguments, **parameters):
    """Return a change that replaces the competing kernels by others."""

    def change(shape, parts):
        views = [Raw(), Difference(len(shape) - 1)]
        return {**parts, "kernels": Kernel(*arguments, views=views, **parameters)}

    return change


def raw_alone(shape, parts):
    parts = without("pairs of differences")(shape, parts)
    parts["kernels"].set_params(views=Raw())
    return parts


def within_sensors(shape, parts):
    """Keep the second interval of pairs on the same sensor."""
    for name in PARTS[:2]:
        parts[name].set_params(reach=(0,) * (len(shape) - 1) + (max(1, shape[-1] // 3),))
    return parts


def steps(shape, parts):
    """Replace intervals apart by intervals side by side."""
    third = max(1, shape[-1] // 3)
    given = {"axes": len(shape) - 1, "size_distribution": "log", "window": 1.0}
    given["pool"] = parts["pairs"].pool
    sizes = (1,) * (len(shape) - 1) + (third,)
    return {
        **parts,
        "pairs": Haar(1, sizes, **given),
        "pairs of differences": Haar(1, sizes, views=Difference(len(shape) - 1), **given),
    }


RIDGE = {
    AS_IS: ridge(),
    "no kernels": ridge(without("kernels")),
    "MiniRocket's kernels": ridge(kernels(MINIROCKET, **COUNTING)),
    "triple kernels": ridge(kernels("triple", **COUNTING)),
    "sign kernels": ridge(kernels("sign", 9, 9, **COUNTING)),
    "Gaussian kernels": ridge(kernels("gaussian", 5, 9, **COUNTING)),
    "Gabor kernels": ridge(kernels("gabor", 5, 9, **COUNTING)),
    "competing signs": ridge(
        kernels("sign", 9, 9, pool=["win", "lose"], window=1.0, dilation="log")
    ),
    "kernels that win": ridge(changed(["kernels"], pool="win")),
    "one rival": ridge(changed(["kernels"], rivals=1)),
    "20 rivals": ridge(changed(["kernels"], rivals=20)),
    "kernels without dilation": ridge(changed(["kernels"], dilation=1)),
    "raw values alone": ridge(raw_alone),
    "no pairs": ridge(without("pairs", "pairs of differences")),
    "no intervals": ridge(without("intervals")),
    "pairs within sensors": ridge(within_sensors),
    "steps for pairs": ridge(steps),
    "uniform sizes": ridge(changed(size_distribution="uniform")),
    "proportions alone": ridge(changed(pool="proportion")),
    "extremes alone": ridge(changed(pool=["max", "min"])),
    "no maxima": ridge(changed(pool=["proportion"] * 9 + ["min"])),
    "no minima": ridge(changed(pool=["proportion"] * 9 + ["max"])),
    "means alone": ridge(changed(pool="mean")),
    "means too": ridge(changed(pool=["proportion"] * 8 + ["max", "min", "mean", "mean"])),
    "drawn windows": ridge(changed(PARTS, window=None)),
}


# --- forests of series ----------------------------------------------------------------------------


def forest(make_dictionary, channels=True, **parameters):
    """Return a function that makes a small forest; `channels`: the first of two axes has them."""
    return lambda shape: MorfClassifier(
        make_dictionary(shape),
        n_estimators=TREES,
        channel_axis=channel_axis(shape) if channels else None,
        n_jobs=1,
        **parameters,
    )


def boosting(dictionary, channels=True, **parameters):
    return lambda shape: MorfBoostingClassifier(
        dictionary,
        max_iter=TREES,
        channel_axis=channel_axis(shape) if channels else None,
        n_jobs=1,
        **parameters,
    )


def series(shape):
    return choose_dictionary("series", shape, channel_axis(shape)).dictionary


SERIES_PARTS = ("intervals", "steps", "variances", "pooled")


def series_without(*names):
    """Return a function that makes the atoms of "series" without some parts."""

    def make(shape):
        whole = series(shape)
        kept = [i for i, name in enumerate(SERIES_PARTS) if name not in names]
        parts = [whole.dictionaries[i] for i in kept]
        return SharedAtoms(Mixture(parts, weights=[whole.weights[i] for i in kept]))

    return make


def uncombined(shape):
    return SharedAtoms(series(shape), combine=None)


SERIES = {
    AS_IS: forest(lambda shape: "series"),
    "no combinations": forest(uncombined),
    "no variances": forest(series_without("variances")),
    "no steps": forest(series_without("steps")),
    "no atoms in place": forest(series_without("intervals", "steps", "variances")),
    "no pooled atoms": forest(series_without("pooled")),
    "atoms of a forest": forest(uncombined, bootstrap=True),
    "atoms of a tree": forest(lambda shape: Subset(series(shape)), bootstrap=True),
    "atoms of a node": forest(series, bootstrap=True),
    "exact splits": forest(lambda shape: "series", splitter="exact"),
    "boosting": boosting("series"),
    "boosting, copies": boosting("series", augment=SeriesCopies()),
    "patches": forest(lambda shape: "patch"),
    "patches, copies": forest(lambda shape: "patch", augment=SeriesCopies()),
}


# --- images ---------------------------------------------------------------------------------------


def image(gradients=True, magnitudes=True, raw=True, pairs="pair", patches=True, every_node=False):
    """Return a function that makes the atoms of "image" without some parts."""

    def make(shape):
        half = tuple(max(2, round(size / 2)) for size in shape)
        plain = [*([Raw()] if raw else []), *([Magnitude()] if magnitudes else [])]
        parts, weights = [], []
        for views, weight in (([Gradient(8)] if gradients else [], 0.45), (plain, 0.05)):
            if views and patches:
                parts.append(Patch(2, half, views=views))
                weights.append(weight)
            if views and pairs:
                parts.append(PAIRS[pairs](half, views))
                weights.append(weight)
        whole = Mixture(parts, weights=weights)
        return whole if every_node else Subset(whole)

    return make


PAIRS = {
    "pair": lambda half, views: Pair(1, half, reach=0.35, views=views),
    "steps": lambda half, views: Haar(1, half, views=views),
}


def half_patch(shape, **parameters):
    return Patch(2, tuple(max(2, round(size / 2)) for size in shape), **parameters)


of_images = partial(forest, channels=False)

IMAGES = {
    AS_IS: of_images(image()),
    "atoms of a node": of_images(image(every_node=True)),
    "atoms of a forest": of_images(
        lambda shape: SharedAtoms(image(every_node=True)(shape), combine=None)
    ),
    "combinations": of_images(
        lambda shape: SharedAtoms(image(every_node=True)(shape), combine="ridge")
    ),
    "no gradients": of_images(image(gradients=False)),
    "no magnitudes": of_images(image(magnitudes=False)),
    "no raw values": of_images(image(raw=False)),
    "no pairs": of_images(image(pairs=None)),
    "no patches": of_images(image(patches=False)),
    "steps for pairs": of_images(image(pairs="steps")),
    "exact splits": of_images(image(), splitter="exact"),
    "copies": of_images(image(), augment=ImageCopies()),
    "patches": of_images(half_patch),
    "patches, sizes by logarithm": of_images(
        lambda shape: half_patch(shape, size_distribution="log")
    ),
    "patches, inside": of_images(lambda shape: half_patch(shape, boundary="inside")),
    "patches, exact splits": of_images(half_patch, splitter="exact"),
    "patches, pooled": of_images(lambda shape: Subset(half_patch(shape, pool=["max", "min"]))),
    "patches to 7 x 7": of_images(lambda shape: Patch(3, 7, boundary="inside")),
    "Gaussian kernels": of_images(lambda shape: Kernel("gaussian", 3, 7)),
    "Gabor kernels": of_images(lambda shape: Kernel("gabor", 3, 7)),
    "sign kernels": of_images(lambda shape: Kernel("sign", 3, 7)),
    "steps": of_images(lambda shape: Haar(1, 7)),
    "pairs": of_images(lambda shape: Pair(1, 7)),
    "boosting": boosting("image", channels=False),
    "boosting, copies": boosting("image", channels=False, augment=ImageCopies()),
    "boosting, depth 4": boosting("image", channels=False, max_depth=4),
    "boosting, best first": boosting("image", channels=False, max_depth=None, max_leaf_nodes=16),
}


# --- patches of the paper's simulations, and of sensors -------------------------------------------


def paper_patch(**parameters):
    return forest(lambda shape: Patch(3, 12, **parameters), max_features=0.5)


PATCHES = {
    AS_IS: paper_patch(),
    "wrapping": paper_patch(boundary="wrap"),
    "inside": paper_patch(boundary="inside"),
    "sizes by logarithm": paper_patch(size_distribution="log"),
    "no bootstrap": forest(lambda shape: Patch(3, 12), max_features=0.5, bootstrap=False),
    "with single features": forest(lambda shape: Mixture([Patch(3, 12), Axis()]), max_features=0.5),
    "squares": paper_patch(views=[Raw(), Square()]),
    "squares alone": paper_patch(views=Square()),
    "differences": paper_patch(views=[Raw(), Difference(-1)]),
    "variances": forest(lambda shape: Mixture([Patch(3, 12), Variance(3, 12)]), max_features=0.5),
    "exact splits": forest(lambda shape: Patch(3, 12), max_features=0.5, splitter="exact"),
}


def over_sensors(size, contiguous):
    """Return a function that makes patches over several sensors, neighbouring ones or any."""

    def make(shape):
        largest = (min(size, shape[0]), max(1, shape[-1] // 4))
        return MorfClassifier(
            Patch(1, largest, contiguous=(contiguous, True)), n_estimators=TREES, n_jobs=1
        )

    return make


SENSORS = {
    "one sensor": over_sensors(1, True),
    "neighbouring sensors": over_sensors(3, True),
    "any sensors": over_sensors(3, False),
}


# --- tables ---------------------------------------------------------------------------------------

TABLES = {
    "guided sums": boosting(None),
    "sums": boosting(Mixture([Axis(), SparseOblique()])),
    "single features": boosting("axis"),
    "SPORF": forest(lambda shape: "sporf"),
    "RF": forest(lambda shape: "axis"),
    "SPORF, exact splits": forest(lambda shape: "sporf", splitter="exact"),
    "depth 4": boosting(None, max_depth=4),
    "best first": boosting(None, max_depth=None, max_leaf_nodes=16),
}
