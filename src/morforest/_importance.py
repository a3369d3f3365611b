"""What the splits of a fitted forest say about the features that their atoms use."""

from __future__ import annotations

import numpy as np

from morforest._atoms import AtomList
from morforest._model import Forest

USED_BYTES = 1 << 24  # of sets of features that are held at once


def split_shares(forest: Forest) -> np.ndarray:
    """Return the share of splits whose atom uses each feature: the paper's importance."""
    atoms = forest.atoms
    if forest.columns is not None:
        total = _users_of_columns(forest)
    elif not atoms.linear:
        total = np.zeros(atoms.layout.features)
        for _, sizes in atoms.sizes():
            total += (sizes > 0).sum(axis=0)
    elif _signed(atoms):
        total = forest._core.importances(np.zeros(len(atoms)))[1]
    else:
        total = _spread(atoms, np.ones(len(atoms)), absolute=False)
    return total.reshape(forest.sample_shape) / max(int(forest.is_split().sum()), 1)


def impurity_decrease(forest: Forest) -> np.ndarray:
    """Return each feature's part of the decrease in impurity, adding up to one.

    A split's decrease goes to its atom's features in proportion to their absolute weights, those
    of one feature in several views added.
    """
    atoms = forest.atoms
    gain = np.where(forest.is_split(), forest.gain.astype(np.float64), 0.0)
    if forest.columns is not None:
        total = _shared_by_columns(forest, gain)
    elif not atoms.linear:
        total = _shared_over_windows(atoms, gain)
    elif _signed(atoms):
        total = forest._core.importances(gain)[0]
    else:
        total = _shared(atoms, gain)
    sum_of_all = total.sum()
    return (total / sum_of_all if sum_of_all > 0 else total).reshape(forest.sample_shape)


def _shared_by_columns(forest: Forest, amount: np.ndarray) -> np.ndarray:
    """Share out what nodes have among the columns of their atoms, and on to the features."""
    assert forest.columns is not None
    atoms = forest.atoms
    node_of_term = atoms.atom_of_term()
    size = np.abs(atoms.weight).astype(np.float64)
    mass = np.bincount(node_of_term, size, minlength=len(atoms))
    of_term = amount[node_of_term] * size / mass[node_of_term]
    of_column = np.bincount(atoms.cell, of_term, minlength=forest.columns.size)
    shared: np.ndarray = forest.columns.footprints.T @ of_column
    return shared


def _users_of_columns(forest: Forest) -> np.ndarray:
    """Count the splits that use each feature, in one of their columns or in several."""
    assert forest.columns is not None
    footprints = forest.columns.footprints
    features = footprints.shape[1]
    rows = max(1, USED_BYTES // features)
    used = footprints > 0
    # Sets of features in bits, of which a split has the union of those of its columns.
    parts = (used[i : i + rows].toarray() for i in range(0, forest.columns.size, rows))
    sets = np.concatenate([np.packbits(part, axis=1) for part in parts])
    count = forest.atoms.count[forest.is_split()].astype(np.int64)
    end, first = np.cumsum(count), 0
    total = np.zeros(features)
    while first < len(count):
        begin = end[first] - count[first]
        last = max(first + 1, int(np.searchsorted(end, begin + rows, "right")))
        of_terms = sets[forest.atoms.cell[begin : end[last - 1]]]
        union = np.bitwise_or.reduceat(of_terms, (end - count)[first:last] - begin)
        total += np.unpackbits(union, axis=1, count=features).sum(axis=0, dtype=np.int64)
        first = last
    return total


def _shared(atoms: AtomList, gain: np.ndarray) -> np.ndarray:
    """Share out gains where all atoms are plain: over cumulative sums, patches of raw values."""
    node_of_term = atoms.atom_of_term()
    # An atom's mass is what it makes of a sample of ones: for cumulative sums, volumes.
    mass = np.bincount(
        node_of_term, atoms.weight * atoms.layout.volumes[atoms.cell], minlength=len(atoms)
    )
    raw = ~_prefixed(atoms)
    absolute = np.bincount(
        node_of_term[raw], np.abs(atoms.weight[raw]).astype(float), minlength=len(atoms)
    )
    mass = np.where(absolute > 0, absolute, mass)
    factor = np.divide(gain, mass, out=np.zeros(len(atoms)), where=mass > 0)
    return _spread(atoms, factor, absolute=True)


def _shared_over_windows(atoms: AtomList, gain: np.ndarray) -> np.ndarray:
    """Share out gains where atoms may be pooled."""
    total = np.zeros(atoms.layout.features)
    for nodes, sizes in atoms.sizes():
        mass = sizes.sum(axis=1)
        share = np.divide(gain[nodes], mass, out=np.zeros(len(mass)), where=mass > 0)
        # Row by row: the bits of a matrix product depend on the processor.
        total += (share[:, np.newaxis] * sizes).sum(axis=0)
    return total


def _signed(atoms: AtomList) -> bool:
    """Say whether some atom is over derived views, or over cumulative sums and not a patch."""
    if not atoms.layout.only_raw:
        return True
    # What an atom over cumulative sums makes of a sample of ones: of a patch its volume, of
    # boxes with opposite signs nothing.
    prefixed = _prefixed(atoms)
    node_of_term = atoms.atom_of_term()[prefixed]
    values = atoms.weight[prefixed] * atoms.layout.volumes[atoms.cell[prefixed]]
    found = np.bincount(node_of_term, values, minlength=len(atoms))
    return bool((found[np.unique(node_of_term)] <= 0).any())


def _prefixed(atoms: AtomList) -> np.ndarray:
    """Say of each term whether its cell is a cumulative sum."""
    layout = atoms.layout
    summed = np.array([bool(plane.prefixed_axes) for plane in layout.planes])
    found: np.ndarray = summed[layout.plane_of(atoms.cell)]
    return found


def _spread(atoms: AtomList, factor: np.ndarray, absolute: bool) -> np.ndarray:
    """Sum over nodes factor times the node's atom: |weight| if `absolute`, else 1 if used.

    Planes of cumulative sums hold indicators of patches, so that their sums can be taken before
    the weights are turned back to features.
    """
    layout = atoms.layout
    features = layout.features
    factor = np.repeat(factor, atoms.count)
    plane_of = layout.plane_of(atoms.cell)
    weight = atoms.weight.astype(np.float64)
    total = np.zeros(features)
    for number, plane in enumerate(layout.planes):
        here = plane_of == number
        feature = atoms.cell[here] - layout.begins[number]
        if plane.prefixed_axes:
            sums = np.bincount(feature, factor[here] * weight[here], minlength=features)
            # Rounding may leave traces of cancelled corners.
            total += np.maximum(layout.unaccumulate(sums[np.newaxis], plane)[0], 0.0)
        else:
            size = np.abs(weight[here]) if absolute else weight[here] != 0
            total += np.bincount(feature, factor[here] * size, minlength=features)
    return total
