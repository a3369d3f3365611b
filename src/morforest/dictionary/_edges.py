"""Edges between features: matrices of users, as symmetric sparse ones, and points on a sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from morforest.dictionary._base import to_numbers

UNIT = 2**32  # the largest weight of an edge, of which there are less than 2^31


def edges_of(name: str, matrix: Any) -> sp.csr_array:
    """Check a square matrix of edges, and return it symmetric and without its diagonal."""
    if sp.issparse(matrix):
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold numbers, got a sparse matrix of {matrix.dtype}.")
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
            raise ValueError(f"{name} must be square and not empty, got the shape {matrix.shape}.")
        try:
            if hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)
            edges = sp.coo_array(matrix).astype(np.float64)
            _check_coordinates(edges)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{name} is a damaged sparse matrix: {error}") from None
    else:
        dense = to_numbers(name, matrix)
        if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or not dense.size:
            raise ValueError(f"{name} must be square and not empty, got the shape {dense.shape}.")
        edges = sp.coo_array(dense)
    if not np.isfinite(edges.data).all():
        raise ValueError(f"{name} contains NaN or infinity: give 0 where there is no edge.")
    if (edges.data < 0).any():
        raise ValueError(
            f"{name} has negative entries, such as {edges.data.min():g}: an edge needs a positive "
            "one, so give absolute values, or 0 where there is no edge."
        )
    return both_ways(sp.csr_array(edges))


def _check_coordinates(edges: sp.coo_array) -> None:
    for indices in edges.coords if hasattr(edges, "coords") else (edges.row, edges.col):
        if len(indices) and not 0 <= indices.min() <= indices.max() < edges.shape[0]:
            raise ValueError("an index is out of range")


def both_ways(edges: sp.csr_array) -> sp.csr_array:
    """Give both directions the larger weight, and leave out the diagonal and zeros."""
    found = sp.csr_array(edges.maximum(edges.T))
    entries = sp.coo_array(found)
    entries.data[entries.row == entries.col] = 0
    found = sp.csr_array(entries)
    found.eliminate_zeros()
    found.sort_indices()
    return found


def cumulated_weights(edges: sp.csr_array) -> np.ndarray:
    """Return the weights of each node's edges, as whole numbers, summed up from its first one."""
    counts = np.diff(edges.indptr)
    filled = np.flatnonzero(counts)
    starts = edges.indptr[:-1][filled]
    largest = np.repeat(np.maximum.reduceat(edges.data, starts), counts[filled])
    whole = np.maximum(np.rint(edges.data / largest * UNIT), 1).astype(np.uint64)
    total = np.cumsum(whole)
    before = np.repeat((total[starts] - whole[starts]), counts[filled])
    found: np.ndarray = total - before
    return found


def on_sphere(points: np.ndarray) -> np.ndarray:
    """Return unit vectors, from directions or from latitudes and longitudes in degrees."""
    if points.shape[1] == 2:
        if np.abs(points[:, 0]).max() > 90:
            raise ValueError(
                "coordinates must have latitudes from -90 to 90 degrees in their first column for "
                f'metric="great_circle", got {np.abs(points[:, 0]).max():g}.'
            )
        latitude, longitude = np.deg2rad(points).T
        across = np.cos(latitude)
        return np.stack(
            [across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1
        )
    if points.shape[1] != 3:
        raise ValueError(
            'coordinates must have two columns, latitude and longitude, for metric="great_circle", '
            f"or three, directions; got {points.shape[1]} columns."
        )
    points = points / np.maximum(np.abs(points).max(axis=1, keepdims=True), 1e-300)
    length = np.sqrt((points * points).sum(axis=1, keepdims=True))
    if (length == 0).any():
        raise ValueError(
            "coordinates have a direction of length zero, which is no place on a sphere."
        )
    return np.asarray(points / length)
