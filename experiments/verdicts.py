"""Is one method better than another? Paired differences of repeats, with intervals and verdicts."""

from dataclasses import dataclass

import numpy as np
from scipy import stats as distributions

from experiments import stats

CONFIDENCE = 1 - stats.LEVEL
BETTER, NOISE, WORSE = "better", "within noise", "worse"


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences of scores, and half the width of its 95 % interval."""

    mean: float
    half: float
    p: float  # two-sided, of the hypothesis that the mean is zero

    @property
    def verdict(self):
        if not abs(self.mean) > self.half:  # of one repeat there is no interval
            return NOISE
        return BETTER if self.mean > 0 else WORSE

    def text(self):
        """Return mean and interval in per cent points, with the verdict if there is one."""
        if np.isnan(self.half):
            return f"{100 * self.mean:+.1f}"
        word = {NOISE: "", BETTER: ", better", WORSE: ", worse"}[self.verdict]
        return f"{100 * self.mean:+.1f} ± {100 * self.half:.1f}{word}"


def difference(ours, theirs):
    """Compare scores that were measured on the same samples, repeat by repeat."""
    found = stats.differences_of(ours, theirs)
    mean, n = float(found.mean()), len(found)
    if n < 2:
        return Difference(mean, np.nan, np.nan)
    error = float(found.std(ddof=1)) / np.sqrt(n)
    if error == 0:
        return Difference(mean, 0.0, float(mean == 0))
    half = error * float(distributions.t.ppf((1 + CONFIDENCE) / 2, n - 1))
    return Difference(mean, half, float(2 * distributions.t.sf(abs(mean) / error, n - 1)))


@dataclass(frozen=True)
class Summary:
    """What several cells say together: verdicts, and the difference of the means over cells."""

    counts: dict[str, int]  # of verdicts
    firm: dict[str, int]  # of those that also hold for all cells at once (Holm)
    overall: Difference


def summary(pairs):
    """Sum up the cells of a comparison; `pairs` are arrays (scores, scores) with equal repeats.

    The interval of the overall difference is over repeats: it holds for these sets, and says
    nothing about others.
    """
    cells = [difference(*pair) for pair in pairs]
    known = [cell for cell in cells if not np.isnan(cell.p)]
    adjusted = stats.holm([cell.p for cell in known]) if known else []
    firm = [cell.verdict for cell, p in zip(known, adjusted, strict=True) if p < stats.LEVEL]
    verdicts = [cell.verdict for cell in cells]
    words = (BETTER, NOISE, WORSE)
    ours, theirs = (np.mean([pair[side] for pair in pairs], axis=0) for side in (0, 1))
    return Summary(
        {word: verdicts.count(word) for word in words},
        {word: firm.count(word) for word in words},
        difference(ours, theirs),
    )
