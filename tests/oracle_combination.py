"""The combination that a node learns, after "Combinations" in `docs/design.md`: slow and obvious.

Floats are added one by one, in the order of that page; NumPy only repeats an operation for elements
that do not depend on each other. Sums of products are Python integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

COMBINATION = 9
MOST_ROWS, LEAST_ROWS = 1000, 4
BITS = 17


def cholesky(matrix: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """The lower factor, and the inverse of its diagonal."""
    size = len(matrix)
    L, inverse = np.zeros((size, size)), np.zeros(size)
    for j in range(size):
        column = matrix[j:, j].copy()
        column[0] += penalty
        for k in range(j):
            column -= L[j, k] * L[j:, k]
        inverse[j] = 1.0 / math.sqrt(column[0])
        L[j:, j] = column * inverse[j]
    return L, inverse


def solve_lower(L: np.ndarray, inverse: np.ndarray, b: np.ndarray) -> np.ndarray:
    """L^-1 b, for one right side or several side by side."""
    z = np.zeros(b.shape)
    for j in range(len(L)):
        rest = b[j].copy() if b.ndim > 1 else b[j]
        for k in range(j):
            rest = rest - L[j, k] * z[k]
        z[j] = rest * inverse[j]
    return z


def solve_upper(L: np.ndarray, inverse: np.ndarray, b: np.ndarray) -> np.ndarray:
    w = b.copy()
    for k in reversed(range(len(L))):
        w[k] *= inverse[k]
        for i in range(k):
            w[i] -= w[k] * L[k, i]
    return w


def add_up(terms) -> np.ndarray:
    """The sum, in the order given."""
    total = 0.0
    for term in terms:
        total = total + term
    return total


def ridge(columns: np.ndarray, target: list[int], penalties) -> np.ndarray | None:
    """Weights of the columns of (rows, columns) integers; None where nothing can be learned."""
    n, d = columns.shape
    q = columns.astype(object)  # Python integers
    sums = [sum(q[:, j]) for j in range(d)]
    spread = sum(n * sum(x * x for x in q[:, j]) - sums[j] ** 2 for j in range(d))
    if spread == 0 or len(set(target)) == 1:
        return None
    unit = float(spread) / n / d
    total = sum(target)
    t = np.array([float(n * y - total) for y in target])
    mean = np.array([float(s) / n for s in sums])
    x = columns.astype(np.float64) - mean
    whole = columns.astype(np.int64)
    best, weights = math.inf, None
    if n >= d:
        products = whole.T @ whole  # exact: integers
        centred = np.array(
            [
                [float(n * int(products[j, k]) - sums[j] * sums[k]) / n for k in range(d)]
                for j in range(d)
            ]
        )
        b = np.array([add_up(x[i, j] * t[i] for i in range(n)) for j in range(d)])
    else:
        products = (whole @ whole.T).tolist()
        rows = [sum(row) for row in products]
        centred = np.array(
            [
                [
                    float(n * (n * products[i][k] - rows[i] - rows[k]) + sum(rows)) / (n * n)
                    for k in range(n)
                ]
                for i in range(n)
            ]
        )
        b = t
    for relative in penalties:
        penalty = relative * unit
        L, inverse = cholesky(centred, penalty)
        c = solve_lower(L, inverse, b)
        z = solve_lower(L, inverse, x.T if n >= d else np.eye(n))
        squares = add_up(z[j] * z[j] for j in range(len(z)))
        fit = add_up(c[j] * z[j] for j in range(len(z)))
        if n >= d:
            left, residual = (1.0 - 1.0 / n) - squares, t - fit
        else:
            left, residual = penalty * squares - 1.0 / n, penalty * fit
        if not (left > 0).all():
            continue
        ratio = residual / left
        error = add_up(ratio * ratio)
        if error < best:
            best = error
            weights = (
                solve_upper(L, inverse, c) if n >= d else add_up(fit[i] * x[i] for i in range(n))
            )
    return weights


def whole_weights(weights: np.ndarray) -> list[int]:
    total = add_up(abs(weights))
    if not 0 < total < math.inf:
        return [0] * len(weights)
    shift = BITS - math.frexp(total)[1]
    while True:
        found = [round(math.ldexp(w, shift)) for w in weights.tolist()]
        if sum(map(abs, found)) <= 2**BITS:
            return found
        shift -= 1


def chosen_rows(columns: np.ndarray, target: list[int], stream) -> list[int]:
    """Rows that differ from the one before, and a sample of those that are too many."""
    rows = [
        i
        for i in range(len(target))
        if i == 0 or target[i] != target[i - 1] or (columns[i] != columns[i - 1]).any()
    ]
    if len(rows) <= MOST_ROWS:
        return rows
    taken = []
    for i, row in enumerate(rows):
        if len(taken) < MOST_ROWS and stream.below(len(rows) - i) < MOST_ROWS - len(taken):
            taken.append(row)
    return taken


def groups(classes: list[int], stream) -> dict[int, int]:
    """+1 or -1 for each class."""
    if len(classes) == 2:
        return {classes[0]: 1, classes[1]: -1}
    while True:
        sides = [1] + [-1 if stream.next() >> 63 else 1 for _ in classes[1:]]
        if -1 in sides:
            return dict(zip(classes, sides, strict=True))


@dataclass
class Combination:
    """A sum of atoms that are not linear."""

    weights: list[int]
    atoms: list

    def values(self, cells: np.ndarray, marks: np.ndarray | None = None) -> np.ndarray:
        terms = zip(self.weights, self.atoms, strict=True)
        return sum(weight * atom.values(cells, marks) for weight, atom in terms)


def learn(rows, atoms: list, penalties, stream, project) -> np.ndarray | Combination | None:
    """The combination as an atom, or None. `rows` are those of a node, in canonical order."""
    if len(rows) < LEAST_ROWS or len(atoms) < 2:
        return None
    columns = np.stack([project(rows.cells, atom) for atom in atoms], axis=1).astype(np.int64)
    target = rows.target.tolist()
    chosen = chosen_rows(columns, target, stream)
    if len(chosen) < LEAST_ROWS:
        return None
    target = [target[i] for i in chosen]
    if rows.target.ndim > 1:  # one of the outputs that vary
        varying = [k for k in range(len(target[0])) if len({values[k] for values in target}) > 1]
        if not varying:
            return None
        k = varying[stream.below(len(varying))]
        target = [values[k] for values in target]
    if rows.n_classes:
        present = sorted(set(target))
        if len(present) < 2:
            return None
        side = groups(present, stream)
        target = [side[label] for label in target]
    weights = ridge(columns[chosen], target, penalties)
    if weights is None:
        return None
    found = whole_weights(weights)
    if sum(w != 0 for w in found) < 2:
        return None
    if not isinstance(atoms[0], np.ndarray):
        return Combination(found, atoms)
    return sum(w * atom for w, atom in zip(found, atoms, strict=True))
