"""The argument ``random_state``: scikit-learn reads it, we say what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from crfx.messages import shown
from crfx.workers import current


def generator_of(random_state: Any) -> np.random.RandomState:
    """As scikit-learn has it; raise ValueError, naming the argument, where it is no seed."""
    try:
        if not isinstance(random_state, bool | np.bool_):
            found: np.random.RandomState = check_random_state(random_state)
            return found
    except (ValueError, TypeError):
        pass
    raise ValueError(
        f"random_state is {shown(random_state)}: pass a whole number from 0 to 2**32 - 1, a "
        "RandomState, or None"
    )


def drawn_seed(random_state: Any) -> int:
    """A seed of a training run; of workers that train together, that of the first."""
    own = int(check_random_state(random_state).randint(2**31 - 1))
    found: int = current().gather(own)[0]
    return found
