"""Means with their errors as text, and Markdown tables."""

import math
import statistics


def group(rows, *names):
    """Return the rows by their values in some columns, in the order in which these first occur."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def markdown(header, lines):
    table = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in table) + "\n"


def standard_error(values):
    """Return the standard error of the mean of independent repeats; NaN for a single one."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def rate(value):
    """Return an error rate as the paper writes it: .0276."""
    return f"{value:.4f}".replace("0.", ".", 1) if value < 1 else f"{value:.3f}"


def rate_and_error(values):
    """Return the mean and the standard error of repeats; of a single one, the value alone."""
    mean = rate(statistics.mean(values))
    return f"{mean} ± {rate(standard_error(values))}" if len(values) > 1 else mean


def mean_and_error(values, digits=4):
    """Return the same with a leading zero and a given number of digits."""
    mean = f"{statistics.mean(values):.{digits}f}"
    return f"{mean} ± {standard_error(values):.{digits}f}" if len(values) > 1 else mean


def median_and_range(values, digits=3):
    """Return the median with the lowest and the highest value; of a single one, the value alone."""
    low, middle, high = min(values), statistics.median(values), max(values)
    if len(values) == 1:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"
