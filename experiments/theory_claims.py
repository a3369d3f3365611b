"""Which claims of the paper's theory hold in our rows; results/theory-claims.md lists them.

One rule is applied to all rows alike. All intervals are Student's, at 95 %.

- A measure has *reached zero*, but for a tolerance, if the interval of its mean at the largest n
  ends below TOLERANCE times the distance of the best constant estimate from the truth, and the
  measure does not rise.
- It *falls* if the interval of its rate lies below LEVEL: tenfold samples take off a tenth or more.
  It *levels off* above zero if this interval lies above LEVEL, and that of the mean above the
  tolerance.
- A theorem *holds* if its measure reaches zero, or falls and ends below half of where it began. It
  *does not hold* if the measure levels off. Everything else is *not shown*.
- A condition is *needed* where the theorem holds with it, and does not without it. A forest is
  *closer with it* where the measure ends at least half as high again without it, and the interval
  of the differences on the same samples excludes zero.
"""

import math
from pathlib import Path

import numpy as np

from experiments import style, theory, theory_conditions, theory_rates
from experiments.store import read
from measuring import tables
from measuring.files import write_whole

HOLDS, REACHED = "holds", "holds, within tolerance"
FAILS, OPEN = "**does not hold**", "not shown"
NEEDED, CLOSER, NOT_NEEDED = "needed here", "closer with it", "not needed here"
WORDS = {"excess": "L_n - L*", "distance": "mean distance", "gap": "bias beyond that with it"}
LEVEL = math.log10(0.9)
TOLERANCE = 0.02
RATIO = 1.5  # how much farther from the truth a forest has to be without a condition


def course(rows, measure):
    """Return the sizes and means of a measure, with the values at the largest size."""
    found = [row for row in rows if row[measure] != ""]
    places, means, _ = style.curve(found, "n", measure)
    return places, means, [row[measure] for row in found if row["n"] == places[-1]]


def outcome(rows, measure, constant):
    """Tell whether a measure goes to zero: HOLDS, REACHED, FAILS, or OPEN."""
    places, means, last = course(rows, measure)
    rate = theory.fit_rate(places, means)
    low, high = (rate.low, rate.high) if rate else (math.nan, math.nan)
    least, most = theory.interval(last)
    tolerance = TOLERANCE * constant
    if most < tolerance and not low > 0:  # no comparison with NaN is true
        return REACHED
    if high < LEVEL:
        return HOLDS if means[-1] < means[0] / 2 else OPEN
    return FAILS if low > LEVEL and least > tolerance else OPEN


def described(rows, measure):
    """Return the first and the last mean of a measure, with the rate between, in words."""
    places, means, last = course(rows, measure)
    rate = theory.fit_rate(places, means)
    text = (
        f"{tables.rate(means[0])} at n = {places[0]:,}, {tables.rate(means[-1])} at {places[-1]:,}"
    )
    if len(last) > 1:
        text += " ({} to {})".format(*map(tables.rate, theory.interval(last)))
    if rate is None:
        return text
    text += f"; rate {rate.slope:+.2f}"
    return text if math.isnan(rate.half) else f"{text} ({rate.low:+.2f} to {rate.high:+.2f})"


def chosen(rows, **wanted):
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def theorem(claim, rows, data, measure, kind=theory.ALL):
    """Return the line of a claim that a measure goes to zero."""
    dictionary = theory_rates.DICTIONARIES[data][0]
    found = chosen(rows, data=data, dictionary=dictionary, kind=kind)
    if not found:
        return None
    run = f"{data}, {dictionary}, {kind}"
    verdict = outcome(found, measure, theory.distributions()[data].constant)
    return [claim, run, f"{WORDS[measure]} {described(found, measure)}", verdict]


def condition(claim, rows, data, name, measure):
    """Return the line of a claim that a condition is needed."""
    without = chosen(rows, data=data, classifier=name)
    full = chosen(rows, data=data, classifier=theory.ALL)
    if not without or not full:
        return None
    constant = theory.distributions()[data].constant
    outcomes = [outcome(found, measure, constant) for found in (without, full)]
    verdict = NOT_NEEDED
    if is_closer(full, without, measure):
        needed = outcomes[0] == FAILS and outcomes[1] in (HOLDS, REACHED)
        verdict = NEEDED if needed else CLOSER
    text = f"{WORDS[measure]} {described(without, measure)}"
    if measure != "gap":
        text += f"; with it {tables.rate(float(np.mean(course(full, measure)[2])))}"
    return [claim, f"{data}, {name}", text, verdict]


def is_closer(full, without, measure):
    """Tell whether forests are closer with a condition, on the same samples at the largest n."""
    last = max(row["n"] for row in without)
    values = [
        {row["repeat"]: row[measure] for row in rows if row["n"] == last}
        for rows in (full, without)
    ]
    pairs = [
        (values[0][repeat], found) for repeat, found in values[1].items() if repeat in values[0]
    ]
    if not pairs:
        return False
    near, far = np.mean(pairs, axis=0)
    low, _ = theory.interval([b - a for a, b in pairs])
    return bool(low > 0 and far >= RATIO * near)


def with_gaps(rows):
    """Add to the rows how much larger the bias is than with all conditions, on the same samples."""
    full = {
        (row["data"], row["n"], row["repeat"]): row["bias"]
        for row in rows
        if row["classifier"] == theory.ALL
    }
    places = [(row["data"], row["n"], row["repeat"]) for row in rows]
    return [
        {**row, "gap": abs(row["bias"] - full[place]) if place in full else ""}
        for row, place in zip(rows, places, strict=True)
    ]


def lines(csvs):
    """Return the claims that have rows."""
    rates = theory_rates.rows(csvs)
    conditions = with_gaps(read(csvs, theory_conditions.STUDY))
    mean = "Theorem 1: estimates of a conditional mean converge"
    posterior = "Corollary: posteriors converge"
    risk = "Theorem 2: the error converges to the lowest possible one"
    oob = "Out-of-bag samples can take the place of a part held out"
    found = [theorem(mean, rates, "2-D numbers", "distance")]
    found += [theorem(posterior, rates, data, "distance") for data in theory_rates.SHOWN]
    found += [theorem(risk, rates, data, "excess") for data in theory_rates.SHOWN]
    for size in ("n", "n^0.7"):
        found += [theorem(oob, rates, "1-D", "distance", f"honest by oob, s = {size}")]
    honest = "Specification 1: honest"
    small = "Specification 1: samples per tree s, with s / n to 0"
    balanced = "Specification 1: balanced splits"
    random = "Specification 1: every feature has a chance at every split"
    single = "Specification 2: single features are among the atoms"
    found += [
        condition(honest, conditions, "constant", "not honest", "gap"),
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
