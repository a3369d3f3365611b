"""What the studies of the theory share: distributions that are known, and forests by name.

All features are uniform on [0, 1] and independent, so that their density is bounded away from zero
and infinity, and the probability of class 1 is a Lipschitz function of them, as the theorems
assume. Therefore the excess risk of a forest, L_n - L*, needs no labels: it is the mean of
|2 p(x) - 1| over the samples x on which the forest and the best rule differ.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import stats
from scipy.interpolate import BSpline
from scipy.special import expit

from experiments.store import origin
from morforest import Axis, MorfClassifier, MorfRegressor, Patch, SparseOblique, consistent

# --- distributions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Distribution:
    title: str
    shape: tuple[int, ...]
    posterior: Callable[[np.ndarray], np.ndarray]  # probability of class 1, or the mean of y
    best: float  # the lowest possible error, L*; NaN where y is a number
    formula: str
    constant: float  # mean distance of the best constant estimate from the truth

    @property
    def regression(self):
        return np.isnan(self.best)

    def draw(self, n, seed):
        """Return n samples and their labels, or numbers."""
        random = np.random.default_rng(seed)
        X = random.random((n, *self.shape), dtype=np.float32)
        noise = random.random(n)
        if self.regression:  # the noise is uniform on [-1, 1]
            return X, self.posterior(X) + 2 * noise - 1
        return X, (noise < self.posterior(X)).astype(np.int64)


HEIGHT = 0.4  # of the waves: probabilities lie between 0.1 and 0.9


def wave(coefficients, X):
    """Return a wave along one direction.

    Its phase is uniform as soon as one coefficient is a whole number, so that the best error of
    1/2 + HEIGHT * wave is 1/2 - 2 * HEIGHT / pi.
    """
    return np.sin(2 * np.pi * (X @ np.asarray(coefficients)))


def wave_posterior(coefficients, X):
    return 0.5 + HEIGHT * wave(coefficients, X)


def interaction_posterior(X):
    """Two features that tell nothing about the class, unless they are seen together."""
    return 0.5 + HEIGHT * np.sin(2 * np.pi * X[:, 0]) * np.sin(2 * np.pi * X[:, 1])


def constant_posterior(probability, X):
    return np.full(len(X), probability)


def sum_posterior(weights, steepness, X):
    """A logistic function of a weighted sum whose standard deviation is 1."""
    used = np.flatnonzero(weights)  # a copy of these features alone, however large the images are
    sums = (X.reshape(len(X), -1)[:, used] - 0.5) @ weights.ravel()[used]
    return expit(steepness * sums / np.sqrt(np.abs(weights).sum() / 12))


def best_of_sum(count, steepness):
    """Return the best error if the log-odds are `steepness` times a standardised sum.

    A sum of `count` uniform features has a B-spline as its density. Signs change nothing, since
    1 - x is uniform if x is.
    """
    density = BSpline.basis_element(np.arange(count + 1), extrapolate=False)
    nodes, parts = np.polynomial.legendre.leggauss(8)
    # Between whole numbers the density is a polynomial; eighths keep the logistic function smooth.
    left = np.arange(0, count, 1 / 8)
    places = (left[:, None] + (nodes + 1) / 16).ravel()
    odds = steepness * np.abs(places - count / 2) / np.sqrt(count / 12)
    return float(np.sum(np.tile(parts / 16, len(left)) * density(places) * expit(-odds)))


def weights(shape, *boxes):
    """Return an array that is 1 on some boxes, each a slice per axis."""
    found = np.zeros(shape)
    for box in boxes:
        found[box] = 1.0
    return found


def stripes(side, column):
    """Return +1 and -1 in turn along one column: every box of two rows sums to zero."""
    found = np.zeros((side, side))
    found[:, column] = (-1.0) ** np.arange(side)
    return found


def sums(title, weights, steepness, formula):
    best = best_of_sum(int(np.abs(weights).sum()), steepness)
    posterior = partial(sum_posterior, weights, steepness)
    return Distribution(title, weights.shape, posterior, best, formula, 0.5 - best)


def waves(title, coefficients, formula):
    best = 0.5 - 2 * HEIGHT / np.pi
    posterior = partial(wave_posterior, coefficients)
    return Distribution(title, (len(coefficients),), posterior, best, formula, 0.5 - best)


PATCH = "28 x 28 patch"  # images whose classes differ by the value of one atom
SIDE = 8  # of the small images
STEEP = 2.5


@cache
def distributions() -> dict[str, Distribution]:
    box = (slice(2, 4), slice(2, 6))
    large = weights((28, 28), (slice(10, 16), slice(10, 16)))
    patch = weights((28, 28), (slice(12, 16), slice(12, 16)))
    together = HEIGHT * (2 / np.pi) ** 2
    return {
        "1-D": waves("one feature", (2.0,), "1/2 + 0.4 sin(4πx)"),
        "2-D": waves("two features", (1.0, 0.5), "1/2 + 0.4 sin(2π(x₁ + x₂/2))"),
        "2-D numbers": Distribution(
            "two features, numbers",
            (2,),
            partial(wave, (1.0, 0.5)),
            np.nan,
            "sin(2π(x₁ + x₂/2))",
            2 / np.pi,
        ),
        PATCH: sums(
            "28 x 28 pixels, an atom", patch, 2.0, "logistic, of the sum of 4 x 4 pixels, an atom"
        ),
        "28 x 28": sums(
            "28 x 28 pixels, no atom", large, 3.0, "logistic, of the sum of 6 x 6 pixels, no atom"
        ),
        "constant": Distribution(
            "nothing to learn", (10,), partial(constant_posterior, 0.2), 0.2, "0.2", 0.0
        ),
        "interaction": Distribution(
            "interaction",
            (10,),
            interaction_posterior,
            0.5 - together,
            "1/2 + 0.4 sin(2πx₁) sin(2πx₂)",
            together,
        ),
        "stripes": sums(
            "stripes", stripes(SIDE, 3), STEEP, "logistic, of one column with alternating signs"
        ),
        "pixel": sums(
            "pixel", weights((SIDE, SIDE), (3, 3)), STEEP, "logistic, of one pixel inside"
        ),
        "box": sums("box", weights((SIDE, SIDE), box), STEEP, "logistic, of the sum of 2 x 4"),
    }


# --- forests --------------------------------------------------------------------------------------

DICTIONARIES = {"RF": Axis(), "SPORF": SparseOblique(), "MORF": Patch(2, 5)}
POWER = "n**0.7"
# s is the number of samples that each tree draws: with replacement in "s = n", else without.
KINDS = {
    "plain, s = n": {},
    "plain, s = n/2": {"bootstrap": False, "max_samples": 0.5},
    "plain, s = n^0.7": {"bootstrap": False, "max_samples": POWER},
    "honest, s = n": {"honest": True},
    "honest, s = n/2": {"honest": True, "bootstrap": False, "max_samples": 0.5},
    "honest, s = n^0.7": {"honest": True, "bootstrap": False, "max_samples": POWER},
    "honest by oob, s = n": {"honest": "oob"},
    "honest by oob, s = n^0.7": {"honest": "oob", "bootstrap": False, "max_samples": POWER},
}
SINGLE = "honest, s = n^0.7, single features"
ALL = "all conditions"
TREES = 300
SMALL_TREES = 1000  # where trees draw few samples, so that they vary more and are faster to grow


def is_small(kind):
    """Tell whether trees draw few samples."""
    return kind in (SINGLE, ALL) or KINDS[kind].get("max_samples") == POWER


def forest(kind, dictionary, seed, regression=False, trees=None, **more):
    """Return an unfitted forest of one thread."""
    estimator = (MorfRegressor if regression else MorfClassifier)(
        dictionary,
        n_estimators=trees or (SMALL_TREES if is_small(kind) else TREES),
        honest_prior="prune",  # what `consistent` has
        n_jobs=1,
        random_state=seed,
        **more,
    )
    if kind == ALL:
        return consistent(estimator)
    if kind == SINGLE:
        share = consistent(estimator).dictionary
        return estimator.set_params(dictionary=share, **KINDS["honest, s = n^0.7"])
    return estimator.set_params(**KINDS[kind])


# --- measures -------------------------------------------------------------------------------------

FIRST = 1000  # rates are fitted from this n on
RANDOM = 1_000_003  # seeds of test samples are far from those of training samples


def measure(model, data, n, seed, tested):
    """Return the row of one fit: excess risk, mean error and bias of the estimate, times."""
    distribution = distributions()[data]
    X, y = distribution.draw(n, [n, seed])
    X_test, _ = distribution.draw(tested, [RANDOM, seed])
    truth = distribution.posterior(X_test)
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    if distribution.regression:
        found, excess = model.predict(X_test), ""
    else:
        found = model.predict_proba(X_test)[:, list(model.classes_).index(1)]
        excess = excess_risk(found, truth)
    return {
        "seed": seed,
        "trees": model.n_estimators,
        "excess": excess,
        "distance": float(np.mean(np.abs(found - truth))),
        "bias": float(np.mean(found - truth)),
        "leaves": float(model.get_n_leaves().mean()),
        "train_seconds": round(fitted - start, 4),
        "test_seconds": round(time.process_time() - fitted, 4),
    }


def excess_risk(found, truth):
    """Return the share of errors beyond those of the best rule, expected over labels."""
    wrong = (found > 0.5) != (truth > 0.5)
    return float(np.mean(np.abs(2 * truth - 1) * wrong))


def below(rows):
    """Return what stands below a table: what its numbers are, and where they come from."""
    return (
        "\nMeans ± standard errors over repeats. A rate is the slope of the logarithms from n = "
        f"{FIRST:,} on, ± its standard error. {origin(rows)}\n"
    )


CONFIDENCE = 0.95


def interval(values):
    """Return Student's interval of the mean of independent repeats; without ends for a single one.

    The measures are never negative, so no end is.
    """
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return math.nan, math.nan
    half = student(count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return max(0.0, mean - half), mean + half


def student(freedom):
    """Return how many standard errors an interval reaches to either side."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


@dataclass(frozen=True)
class Rate:
    """The slope of a line through logarithms; its standard error is NaN for two points."""

    slope: float
    error: float
    freedom: int = 0
    offset: float = 0.0  # the logarithm of the value at n = 1

    def __str__(self):
        error = "" if np.isnan(self.error) else f" ± {self.error:.2f}"
        return f"{self.slope:+.2f}{error}"

    @property
    def low(self):
        return self.slope - self.half

    @property
    def high(self):
        return self.slope + self.half

    @property
    def half(self):
        """Half of the width of the interval of the slope."""
        return student(self.freedom) * self.error if self.freedom else math.nan

    def at(self, n):
        return np.exp(self.offset + self.slope * np.log(n))


def fit_rate(sizes, values) -> Rate | None:
    """Fit value = c n^slope to means at sizes from FIRST on; None if there is nothing to fit."""
    kept = [(n, value) for n, value in zip(sizes, values, strict=True) if n >= FIRST and value > 0]
    if len(kept) < 2:
        return None
    x, y = np.log(np.array(kept)).T
    middle = float(x.mean())
    x = x - middle
    slope = float(x @ y / (x @ x))
    left = y - y.mean() - slope * x
    freedom = len(kept) - 2
    error = np.sqrt(left @ left / freedom / (x @ x)) if freedom else np.nan
    return Rate(slope, float(error), freedom, float(y.mean()) - slope * middle)
