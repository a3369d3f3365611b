"""A second writing of "Honest trees" of `docs/design.md`: samples, their parts, and pruning."""

from __future__ import annotations

import math

import numpy as np
from oracle_atoms import Stream, derive

LEAF_PART = 10


def drawn_rows(key, n_draws, canonical, counts):
    """How often each row is drawn without replacement, in one pass over the samples."""
    stream, drawn = Stream(key), np.zeros_like(counts)
    left = int(counts.sum())
    for row in canonical:
        for _ in range(int(counts[row])):
            if n_draws == 0:
                return drawn
            if stream.below(left) < n_draws:
                drawn[row] += 1
                n_draws -= 1
            left -= 1
    return drawn


def groups(hashes, target, canonical):
    """The rows of each group of equal samples, in canonical order."""
    found = {}
    for row in canonical:
        targets = tuple(np.atleast_1d(target[row]).tolist())
        found.setdefault((int(hashes[row]), targets), []).append(int(row))
    return list(found.values())


def wanted_of_class(drawn, share):
    """How many of the groups drawn of each class fill leaves."""
    wanted, owed = [], 0.0
    for number in drawn:
        owed += share * number
        some = math.floor(owed + 0.5)
        shared = number > 1  # a class with two groups is in both parts
        some = min(max(some, int(shared)), number - int(shared))
        wanted.append(some)
        owed -= some
    return wanted


def part(key, share, all_groups, classes, drawn, counts):
    """Counts for splits and for leaves; `counts` are those of all rows, `drawn` those of the tree.

    A share of None stands for the samples that were not drawn.
    """
    splits, leaves = np.zeros_like(drawn), np.zeros_like(drawn)
    taken = [group for group in all_groups if drawn[group].any()]
    if share is None:
        splits[:] = drawn
        for group in all_groups:
            if not drawn[group].any():
                leaves[group] = counts[group]
    else:
        label = (lambda group: 0) if classes is None else (lambda group: int(classes[group[0]]))
        left = [0] * (1 if classes is None else int(classes.max()) + 1)
        for group in taken:
            left[label(group)] += 1
        wanted = wanted_of_class(left, share)
        stream = Stream(derive(key, LEAF_PART))
        for group in taken:
            k = label(group)
            fills = stream.below(left[k]) < wanted[k]
            left[k] -= 1
            wanted[k] -= fills
            (leaves if fills else splits)[group] = drawn[group]
    if not splits.any() or not leaves.any():  # a single leaf of all samples
        splits[:], leaves[:] = 0, drawn
        splits[taken[0]] = drawn[taken[0]]
    return splits, leaves


def prune(nodes):
    """Number the nodes anew, depth first, without the splits that have an empty side.

    Nodes keep their rows; `weight` is that of the leaves which stay.
    """

    def resolved(node):
        while not node.is_leaf:
            left, right = nodes[node.left], nodes[node.left + 1]
            if len(left.leaf_rows) and len(right.leaf_rows):
                break
            node = left if len(left.leaf_rows) else right
        return node

    kept = [resolved(nodes[0])]
    open_nodes = [0]
    lefts = {}
    while open_nodes:
        place = open_nodes.pop()
        node = kept[place]
        if node.is_leaf:
            continue
        lefts[place] = len(kept)
        kept += [resolved(nodes[node.left]), resolved(nodes[node.left + 1])]
        open_nodes += [lefts[place] + 1, lefts[place]]
    for place in reversed(range(len(kept))):
        if place in lefts:
            kept[place].left = lefts[place]
            kept[place].weight = sum(kept[lefts[place] + side].weight for side in (0, 1))
    return kept
