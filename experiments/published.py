"""The authors' published error rates; published.toml holds the numbers."""

import functools
import math
import tomllib
from pathlib import Path

from scipy.stats import norm

LABEL = "MORF, as published"
# Simulation C: two normal distributions a shift apart, see morforest.datasets.make_impulse.
BEST_OF_C = float(norm.cdf(-math.sqrt(sum(math.exp(-0.2 * k) for k in range(80))) / 2))


@functools.cache
def table() -> dict:
    with (Path(__file__).parent / "published.toml").open("rb") as file:
        return tomllib.load(file)


def errors(data: str) -> dict[str, dict[int, float]]:
    """Return error rates by classifier and number of training samples, where there are any."""
    found = table().get(data)
    if found is None:
        return {}
    rates = {"MORF": dict(zip(found["n"], found["MORF"], strict=True))}
    for n, others in found.get("at", {}).items():
        for name, error in others.items():
            rates.setdefault(name, {})[int(n)] = error
    return rates
