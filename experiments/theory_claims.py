"""Which claims of the paper's theory hold in our rows; results/theory-claims.md lists them.

A measure *goes to zero* if it falls as n grows, by more than two standard errors of the fitted
rate, and ends below half of where it began. If it falls by less, this was not shown. A condition is
*needed* where a forest without it, but with all others, ends at least half as far again from the
truth, by more than two standard errors.
"""

import math
from pathlib import Path

import numpy as np

from experiments import style, theory, theory_conditions, theory_rates
from experiments.store import read
from measuring import tables
from measuring.files import write_whole

HOLDS, FAILS, OPEN = "holds", "**does not hold**", "not shown"
NEEDED, HELPS_NOT = "needed here", "not needed here"
WORDS = {"excess": "L_n - L*", "distance": "mean distance", "bias": "mean p_n - p"}
RATIO = 1.5  # how much farther from the truth a forest has to be without a condition


def course(rows, measure):
    """Return the sizes and means of a measure, with the values at the largest size."""
    found = [row for row in rows if row[measure] != ""]
    places, means, _ = style.curve(found, "n", measure)
    return places, means, [row[measure] for row in found if row["n"] == places[-1]]


def falls(rows, measure):
    """Tell whether a measure goes to zero: HOLDS, OPEN (it falls too little to say), or FAILS."""
    places, means, _ = course(rows, measure)
    rate = theory.fit_rate(places, means)
    if rate is None or math.isnan(rate.error):
        return OPEN
    if rate.slope + 2 * rate.error >= 0:
        return FAILS
    return HOLDS if means[-1] < means[0] / 2 else OPEN


def described(rows, measure):
    """Return the first and the last mean of a measure, with the rate between, in words."""
    places, means, _ = course(rows, measure)
    rate = theory.fit_rate(places, means)
    text = (
        f"{tables.rate(means[0])} at n = {places[0]:,}, {tables.rate(means[-1])} at {places[-1]:,}"
    )
    return text if rate is None else f"{text}; rate {rate}"


def chosen(rows, **wanted):
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def theorem(claim, rows, data, measure, kind=theory.ALL):
    """Return the line of a claim that a measure goes to zero."""
    dictionary = theory_rates.DICTIONARIES[data][0]
    found = chosen(rows, data=data, dictionary=dictionary, kind=kind)
    if not found:
        return None
    run = f"{data}, {dictionary}, {kind}"
    return [claim, run, f"{WORDS[measure]} {described(found, measure)}", falls(found, measure)]


def condition(claim, rows, data, name, measure):
    """Return the line of a claim that a condition is needed."""
    others = chosen(rows, data=data, classifier=name)
    full = chosen(rows, data=data, classifier=theory.ALL)
    if not others or not full:
        return None
    last = [np.abs(course(found, measure)[2]) for found in (others, full)]
    means = [float(np.mean(values)) for values in last]
    errors = [tables.standard_error(list(values)) for values in last]
    clear = means[0] - means[1] > 2 * math.hypot(*np.nan_to_num(errors))
    verdict = NEEDED if clear and means[0] >= RATIO * means[1] else HELPS_NOT
    n = f"{course(full, measure)[0][-1]:,}"
    text = (
        f"{WORDS[measure]} at n = {n}: {tables.rate(means[0])}, and {tables.rate(means[1])} with it"
    )
    return [claim, f"{data}, {name}", text, verdict]


def lines(csvs):
    """Return the claims that have rows."""
    rates, conditions = theory_rates.rows(csvs), read(csvs, theory_conditions.STUDY)
    mean = "Theorem 1: estimates of a conditional mean converge"
    posterior = "Corollary: posteriors converge"
    risk = "Theorem 2: the error converges to the lowest possible one"
    oob = "Out-of-bag samples can take the place of a part held out"
    found = [theorem(mean, rates, "2-D numbers", "distance")]
    found += [theorem(posterior, rates, data, "distance") for data in theory_rates.SHOWN]
    found += [theorem(risk, rates, data, "excess") for data in theory_rates.SHOWN]
    found += [theorem(oob, rates, "1-D", "distance", "honest by oob, s = n")]
    honest = "Specification 1: honest"
    small = "Specification 1: samples per tree s, with s / n to 0"
    balanced = "Specification 1: balanced splits"
    random = "Specification 1: every feature has a chance at every split"
    single = "Specification 2: single features are among the atoms"
    found += [
        condition(honest, conditions, "constant", "not honest", "bias"),
        condition(honest, conditions, "1-D", "not honest", "distance"),
        condition(honest, conditions, "box", "not honest", "distance"),
        condition(small, conditions, "1-D", "s = n/2", "distance"),
        condition(small, conditions, "interaction", "s = n/2", "distance"),
        condition(balanced, conditions, "constant", "not balanced", "distance"),
        condition(balanced, conditions, "1-D", "not balanced", "distance"),
        condition(random, conditions, "interaction", "no random splits", "excess"),
        condition(single, conditions, "stripes", theory_conditions.NO_SINGLE, "excess"),
        condition(single, conditions, "pixel", theory_conditions.NO_SINGLE, "excess"),
        condition(single, conditions, "box", theory_conditions.NO_SINGLE, "excess"),
    ]
    return [line for line in found if line]


def write(csvs: Path) -> None:
    found = lines(csvs)
    if found:
        heads = ["claim", "what was run", "what it showed", "verdict"]
        write_whole(csvs / "theory-claims.md", tables.markdown(heads, found))
