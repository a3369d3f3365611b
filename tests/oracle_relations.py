"""The dictionaries of connected sets of `oracle_atoms.py`, from "related" in `docs/design.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from oracle_atoms import (
    Boxes,
    DrawnWeights,
    ListedWeights,
    Side,
    Stream,
    cumulative_fractions,
    first_at_least,
    floyd,
)

VAIN = 64


@dataclass
class RelatedSides:
    """Sets of nodes, drawn from a symmetric matrix without a diagonal.

    `rule` is "grow", "walk", or a pair: the smallest and largest number of steps. `odds` are those
    of the sizes, empty if all are alike. With `by_weight`, larger entries are drawn more often.
    """

    matrix: np.ndarray
    min_size: int
    max_size: int
    rule: str | tuple[int, int] = "grow"
    odds: Sequence[float] = ()
    by_weight: bool = False
    contiguous = False

    @property
    def length(self) -> int:
        return len(self.matrix)

    def draw_side(self, stream: Stream) -> Side:
        members = self.neighbourhood(stream) if isinstance(self.rule, tuple) else self.set(stream)
        places = {member: place for place, member in enumerate(members)}
        return Side(max(len(members), self.min_size), places)

    def neighbours(self, node: int) -> list[int]:
        return np.flatnonzero(self.matrix[node]).tolist()

    def size(self, stream: Stream) -> int:
        if len(self.odds):
            return self.min_size + first_at_least(cumulative_fractions(self.odds), stream.next())
        return self.min_size + stream.below(self.max_size - self.min_size + 1)

    def set(self, stream: Stream) -> list[int]:
        size = self.size(stream)
        members = [stream.below(self.length)]
        size = min(size, len(self.connected_with(members[0])))
        node, vain = members[0], 0
        while len(members) < size and vain < VAIN * len(members):
            if self.rule == "grow":
                node = members[stream.below(len(members))]
            found = self.next_to(node, stream)
            if self.rule == "walk":
                node = found
            vain += 1
            if found not in members:
                members.append(found)
                vain = 0
        return members

    def next_to(self, node: int, stream: Stream) -> int:
        others = self.neighbours(node)
        if not self.by_weight:
            return others[stream.below(len(others))]
        weights = [float(self.matrix[node, other]) for other in others]
        whole = [max(1, round(weight / max(weights) * 2**32)) for weight in weights]
        drawn = stream.below(sum(whole))
        return next(other for k, other in enumerate(others) if sum(whole[: k + 1]) > drawn)

    def connected_with(self, node: int) -> set[int]:
        found, before = {node}, set()
        while found != before:
            before = set(found)
            found |= {other for member in found for other in self.neighbours(member)}
        return found

    def neighbourhood(self, stream: Stream) -> list[int]:
        low, high = self.rule
        steps = low + stream.below(high - low + 1)
        members = [stream.below(self.length)]
        distance = {members[0]: 0}
        for node in members:  # which grows meanwhile
            room = self.max_size - len(members)
            if distance[node] == steps or room == 0:
                break
            others = self.neighbours(node)
            new = [other for other in others if other not in distance]
            if len(others) > 2 * self.max_size:
                joining: list[int] = []
                while len(joining) < room:
                    other = others[stream.below(len(others))]
                    if other in new and other not in joining:
                        joining.append(other)
            elif len(new) > room:
                joining = [new[place] for place in floyd(stream, len(new), room)]
            else:
                joining = new
            distance |= dict.fromkeys(joining, distance[node] + 1)
            members += joining
        return members


class RelatedAtoms(Boxes):
    """Sets of features, or of the positions of one channel, which weigh one or have weights."""

    def __init__(
        self,
        side: RelatedSides,
        shape: tuple[int, ...],
        channel_axis: int | None = None,
        weights: DrawnWeights | ListedWeights | None = None,
        views: Sequence[int] = (0,),
        planes: int = 1,
    ):
        super().__init__([], views, planes)
        self.side, self.weights, self.lengths = side, weights, shape
        features = np.arange(int(np.prod(shape))).reshape(shape)
        channels = (
            features[np.newaxis] if channel_axis is None else np.moveaxis(features, channel_axis, 0)
        )
        self.features = channels.reshape(len(channels), -1)  # (channels, positions)

    def draw(self, stream: Stream) -> np.ndarray:
        view = self.view(stream)
        channel = stream.below(len(self.features))
        side = self.side.draw_side(stream)
        if self.weights is not None:
            self.weights.begin(stream, (side.size,))
        atom = np.zeros((self.planes, self.features.size), dtype=np.int64)
        for member, place in side.places.items():
            weight = 1 if self.weights is None else self.weights.weight(stream, (place,))
            atom[view, self.features[channel, member]] = weight
        return atom.ravel()
