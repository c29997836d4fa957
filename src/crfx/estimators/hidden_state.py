"""What files hold of a HiddenUnitCRF beside its model and its training: the sweeps that vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crfx.estimators.file_values import whole
from crfx.estimators.herding import Votes
from crfx.estimators.model_parameters import parameter_arrays
from crfx.io.model_file import Contents
from crfx.model.continuing import widened
from crfx.model.model import Model
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.scores import IntArray

if TYPE_CHECKING:
    from crfx.estimators.hidden_unit import HiddenUnitCRF

_VOTES = "votes"


def places_in(model: Model, old: Model, codes: IntArray) -> IntArray:
    """(parameters,) where those of a model with hidden units are in one with fewer labels, of which
    k is label ``codes[k]`` now; -1 for new ones.
    """
    node, before = model.node, old.node
    assert isinstance(node, HiddenUnitFunction)
    assert isinstance(before, HiddenUnitFunction)
    found, begin = [node.shape.places_in(before.shape, codes)], before.shape.size
    for table in parameter_arrays(old)[1:]:
        n_axes = table.ndim if table.ndim == 1 else old.order + 1
        numbers = 1 + begin + np.arange(table.size).reshape(table.shape)
        found.append(widened(numbers, n_axes, codes, model.n_labels).reshape(-1) - 1)
        begin += table.size
    return np.concatenate(found)


def pack_votes(crf: HiddenUnitCRF, contents: Contents) -> None:
    """Put them into a model file."""
    if crf._votes is not None:
        size = sum(part.size for part in parameter_arrays(crf.model_))
        contents.values["n_votes"] = len(crf._votes.sweeps)
        contents.arrays[_VOTES] = np.array(crf._votes.sweeps, np.float32).reshape(-1, size)


def unpack_votes(crf: HiddenUnitCRF, contents: Contents) -> None:
    """Take them out again."""
    crf._votes = None
    # Files of the first days do not say how many votes they hold.
    if "n_votes" in contents.values or _VOTES in contents.arrays:
        size = sum(part.size for part in parameter_arrays(crf.model_))
        votes = contents.arrays[_VOTES]
        n_votes = whole({"n_votes": len(votes)} | contents.values, "n_votes")
        if votes.shape != (n_votes, size) or votes.dtype != np.float32:
            raise ValueError("its votes do not fit")
        if not np.isfinite(votes).all():
            raise ValueError("its votes are not all finite")
        crf._votes = Votes(list(votes))
