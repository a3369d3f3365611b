"""Forest weights by hand: one sample, one tree, one training row at a time.

A forest is given by the leaf of each training row in each tree (trees, rows), by the rows' weights
in each tree, and by the leaves of the samples to predict (samples, trees). With `silent`, trees do
not vote from leaves that no row fills.
"""

from __future__ import annotations

import math

import numpy as np


def voices(train_leaf, weight, of_sample, silent):
    """The weights of the rows in each leaf that a prediction is the mean of."""
    n_trees = len(train_leaf)
    lists = [in_leaf(train_leaf[tree], weight[tree], of_sample[tree]) for tree in range(n_trees)]
    if not silent:
        return lists
    filled = [np.unique(np.asarray(train_leaf[tree])[weight[tree] > 0]) for tree in range(n_trees)]
    votes = [tree for tree in range(n_trees) if of_sample[tree] in filled[tree]]
    if votes:
        return [lists[tree] for tree in votes]
    return [
        in_leaf(train_leaf[tree], weight[tree], leaf)
        for tree in range(n_trees)
        for leaf in filled[tree]
    ]


def in_leaf(train_leaf, weight, leaf):
    """Weights of the rows in one leaf of a tree; of all its rows if the leaf has none."""
    found = np.where(train_leaf == leaf, weight, 0).astype(np.int64)
    return found if found.any() else np.asarray(weight, dtype=np.int64)


def forest_weights(train_leaf, weight, leaves, silent=False):
    """The mean over trees of each row's share of the weight of the leaf (samples, rows)."""
    found = np.zeros((len(leaves), np.shape(train_leaf)[1]))
    for sample, of_sample in enumerate(leaves):
        lists = voices(train_leaf, weight, of_sample, silent)
        for members in lists:
            found[sample] += members * (1.0 / float(members.sum()))
        found[sample] *= 1.0 / len(lists)
    return found


def nearest(weights, k):
    """Rows of the largest weights, and these; -1 and 0 where there are no more."""
    rows, found = np.full((len(weights), k), -1), np.zeros((len(weights), k))
    for sample, of_sample in enumerate(weights):
        order = sorted(np.flatnonzero(of_sample).tolist(), key=lambda row: (-of_sample[row], row))
        for place, row in enumerate(order[:k]):
            rows[sample, place], found[sample, place] = row, of_sample[row]
    return rows, found


def proximity(leaves, other_leaves):
    """The share of trees in which two samples have the same leaf."""
    return np.array([[np.mean(a == b) for b in other_leaves] for a in leaves])


def quantiles(train_leaf, weight, leaves, y, q, silent=False):
    """The smallest target up to which weights sum to the level, in whole shares of 2^bits."""
    found = np.empty((len(leaves), len(q)))
    for sample, of_sample in enumerate(leaves):
        shares = {}
        lists = voices(train_leaf, weight, of_sample, silent)
        one = math.ldexp(1.0, 63 - max(len(train_leaf), len(lists)).bit_length())
        for members in lists:
            scale = one / float(members.sum())
            for row in np.flatnonzero(members):
                shares[y[row]] = shares.get(y[row], 0) + int(float(members[row]) * scale)
        total = float(sum(shares.values()))
        for place, level in enumerate(q):
            wanted = (level - 2.0**-36) * total if level < 1 else total
            up_to = 0
            for value in sorted(shares):
                up_to += shares[value]
                if float(up_to) >= wanted:
                    break
            found[sample, place] = value
    return found
