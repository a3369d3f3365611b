"""Attributions by hand: one sample, one tree, one split at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np


def leaf_values(forest, node):
    """What a leaf predicts: class frequencies, or its values. None if it says nothing."""
    payload = -1 - int(forest.next[node])
    if not forest.class_count:
        found = forest.leaf_value.reshape(-1, forest.values)[payload].astype(float)
        return None if np.isnan(found).any() else found
    found = np.zeros(forest.class_count)
    if payload < forest.class_count:
        found[payload] = 1.0
        return found
    ends = np.cumsum(forest.distribution_size, dtype=int)
    at = payload - forest.class_count
    part = slice(ends[at] - int(forest.distribution_size[at]), ends[at])
    if part.start == part.stop:
        return None
    found[forest.distribution_class[part]] = forest.distribution_weight[part]
    return found / found.sum()


def leaves_below(forest, begin, node):
    """The leaves below a node, itself if it is one."""
    if forest.next[node] < 0:
        return [node]
    left = begin + int(forest.next[node])
    return leaves_below(forest, begin, left) + leaves_below(forest, begin, left + 1)


def expected(forest, begin, node):
    """The mean of the leaves below a node that speak, by their weights; None without any."""
    said = {leaf: leaf_values(forest, leaf) for leaf in leaves_below(forest, begin, node)}
    leaves = [leaf for leaf, values in said.items() if values is not None]
    if not leaves:
        return None
    weights = forest.weight[leaves].astype(float)
    return weights @ np.array([said[leaf] for leaf in leaves]) / weights.sum()


def feature_shares(forest):
    """The share of each feature in each node's atom, over all positions of its window."""
    sizes = abs(forest.matrix()).toarray()
    planes = sizes.reshape(len(sizes), -1, *forest.shape)
    if not forest.atoms.linear:
        moved = np.zeros_like(planes)
        for node, counts in enumerate(forest.atoms.windows()):
            for place in itertools.product(*map(range, counts)):
                moved[node] += np.roll(planes[node], place, range(1, planes[node].ndim))
        planes = moved
    sizes = planes.sum(axis=1).reshape(len(sizes), math.prod(forest.shape))
    return sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300)


def attributions(forest, X):
    """Return sums over the trees (n, features, outputs) and the sum of the roots' expectations."""
    shares, leaf = feature_shares(forest), forest.apply(X)
    known = {}
    values = np.zeros((len(X), math.prod(forest.shape), forest.outputs))
    baseline = np.zeros(forest.outputs)
    parent = forest.parents()
    for tree in range(forest.n_trees):
        begin = int(forest.tree_begin[tree])

        def at(node, begin=begin):
            if node not in known:
                known[node] = expected(forest, begin, node)
            return known[node]

        baseline += at(begin)
        for row in range(len(X)):
            node = begin + int(leaf[row, tree])
            while node != begin:
                change = at(node) - at(parent[node])
                values[row] += np.outer(shares[parent[node]], change)
                node = int(parent[node])
    return values, baseline


def attributions_of_votes(forest, X):
    """Return means over the trees that vote (n, features, outputs), and the mean of the roots.

    Where a tree falls silent, the split that silences it changes its expectation to the baseline,
    or to the mean of all leaves if no tree votes.
    """
    shares, leaf, parent = feature_shares(forest), forest.apply(X), forest.parents()
    begins = forest.tree_begin.astype(int)[:-1]
    at = {}
    for tree, begin in enumerate(begins):
        for node in range(begin, int(forest.tree_begin[tree + 1])):
            at[node] = expected(forest, begin, node)
    voices = [begin for begin in begins if at[begin] is not None]
    baseline = np.mean([at[begin] for begin in voices], axis=0)
    said = [leaf_values(forest, node) for node in np.flatnonzero(forest.next < 0)]
    nobody = np.mean([values for values in said if values is not None], axis=0)
    values = np.zeros((len(X), math.prod(forest.shape), forest.outputs))
    for row in range(len(X)):
        votes = sum(at[begin + leaf[row, tree]] is not None for tree, begin in enumerate(begins))
        for tree, begin in enumerate(begins):
            if at[begin] is None:
                continue
            node = begin + int(leaf[row, tree])
            if at[node] is None:
                while at[parent[node]] is None:
                    node = parent[node]
                change = (baseline if votes else nobody) - at[begin]
                values[row] += np.outer(shares[parent[node]], change)
                continue
            while node != begin:
                change = at[node] - at[parent[node]]
                values[row] += np.outer(shares[parent[node]], change)
                node = int(parent[node])
        values[row] /= votes or len(voices)
    return values, baseline
