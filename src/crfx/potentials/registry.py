"""The potentials that a model file can hold, by kind: a new one is a file and a line here."""

from __future__ import annotations

from crfx.potentials.base import Potential
from crfx.potentials.context_trees import ContextTrees
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.trees import BoostedTrees

POTENTIALS: dict[str, type[Potential]] = {
    potential.kind: potential
    for potential in (BoostedTrees, ContextTrees, LinearFunction, HiddenUnitFunction)
}
