"""Relations along single axes: what dictionaries with the parameter `along` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from morforest._parameters import is_integer
from morforest.dictionary._base import Dictionary
from morforest.dictionary._relations import Related
from morforest.dictionary._shape import SampleShape


class Along(Dictionary):
    """Behaviour of a dictionary with the parameter `along`, a dict from axes to relations."""

    along: Mapping[int, Related] | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get parameters; with `deep`, those of relations too: ``along__0__max_size``."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep and isinstance(self.along, Mapping):
            for axis, relation in self.along.items():
                params[f"along__{axis}"] = relation
                if isinstance(relation, Dictionary):
                    nested = relation.get_params(deep=True)
                    params.update({f"along__{axis}__{k}": v for k, v in nested.items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``along__0__max_size`` is one of the relation along axis 0."""
        nested = {name: params.pop(name) for name in list(params) if name.startswith("along__")}
        super().set_params(**params)
        for name, value in nested.items():
            along: Any = self.along if isinstance(self.along, Mapping) else {}
            axis, _, rest = name.removeprefix("along__").partition("__")
            key = next((key for key in along if str(key) == axis), None)
            if key is None:
                raise ValueError(
                    f"Invalid parameter {name!r}: along has relations for the axes {list(along)}."
                )
            if rest:
                along[key].set_params(**{rest: value})
            else:
                self.along = {**along, key: value}
        return self

    def _check_stored(self) -> None:
        for relation in (self.along or {}).values():
            relation._check_stored()

    def _relations(self, shape: SampleShape) -> dict[int, Related]:
        """Check the relations, and count their axes from 0."""
        if self.along is None:
            return {}
        if not isinstance(self.along, Mapping):
            raise ValueError(
                "along must be None or a dict from axes of a sample to relations, such as "
                f"{{0: Graph(adjacency)}}, got {self.along!r}."
            )
        found: dict[int, Related] = {}
        for axis, relation in self.along.items():
            if not is_integer(axis) or not -shape.rank <= axis < shape.rank:
                raise ValueError(
                    f"along has the axis {axis!r}, but the axes of samples of shape {shape} are "
                    f"{-shape.rank} to {shape.rank - 1}."
                )
            if not isinstance(relation, Related):
                raise ValueError(
                    f"along[{axis}] must be a Graph, Neighbours or Similarity, got {relation!r}."
                )
            place = int(axis) % shape.rank
            if place in found:
                raise ValueError(f"along names axis {place} twice, got {self.along!r}.")
            found[place] = relation
        return found
