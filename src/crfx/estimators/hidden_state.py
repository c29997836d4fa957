"""What files hold of a HiddenUnitCRF beside its model and its training: the sweeps that vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crfx.estimators.file_values import whole
from crfx.io.model_file import Contents
from crfx.model.flat_parameters import n_parameters

if TYPE_CHECKING:
    from crfx.estimators.hidden_unit import HiddenUnitCRF

_VOTES = "votes"


def pack_votes(crf: HiddenUnitCRF, contents: Contents) -> None:
    """Put them into a model file."""
    if crf._votes is not None:
        size = n_parameters(crf.model_)
        contents.values["n_votes"] = len(crf._votes)
        contents.arrays[_VOTES] = np.array(crf._votes, np.float32).reshape(-1, size)


def unpack_votes(crf: HiddenUnitCRF, contents: Contents) -> None:
    """Take them out again."""
    crf._votes = None
    # Files of the first days do not say how many votes they hold.
    if "n_votes" in contents.values or _VOTES in contents.arrays:
        size = n_parameters(crf.model_)
        votes = contents.arrays[_VOTES]
        n_votes = whole({"n_votes": len(votes)} | contents.values, "n_votes")
        if votes.shape != (n_votes, size) or votes.dtype != np.float32:
            raise ValueError("its votes do not fit")
        if not np.isfinite(votes).all():
            raise ValueError("its votes are not all finite")
        crf._votes = list(votes)
