"""Labels in evaluation data that a model does not know: told of, never guessed.

They are mistakes of the data or of the training set, so users hear of them, and figures stay what
they say: a label that the model cannot predict is never right, and has probability 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.messages import warn
from crfx.objectives.truth import UNKNOWN
from crfx.scores import IntArray

MOST_NAMED = 5


def known_codes(
    labels: Sequence[Any], classes: npt.NDArray[Any]
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Label codes (rows,), ``UNKNOWN`` for None and for labels that are no class; and (rows,)
    whether they are the latter.
    """
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([code_of.get(label, UNKNOWN) for label in labels], dtype=np.int64)
    missing = np.array([label is None for label in labels], dtype=bool)
    return codes, (codes == UNKNOWN) & ~missing


def unknown_counts(labels: Sequence[Any], is_strange: npt.NDArray[np.bool_]) -> Counter[Any]:
    """How often every label occurs that the model does not know."""
    return Counter(labels[int(row)] for row in np.flatnonzero(is_strange))


def warn_of_unknown(counts: Counter[Any], where: str, effect: str) -> None:
    """Name the labels that the model does not know, where there are any, and what it means."""
    if not counts:
        return
    told = [f"{label!r} ({count})" for label, count in counts.most_common(MOST_NAMED)]
    if len(counts) > MOST_NAMED:
        told.append(f"and {len(counts) - MOST_NAMED} more")
    warn(
        f"{where} has labels that the model was not trained on, so often: {', '.join(told)}; "
        f"{effect}",
        UserWarning,
    )
