"""Takes scores and truth, gives value, gradient and curvature; comes after `inference`, before
`potentials`.

One file per objective: its settings, a frozen dataclass whose `bind` gives an objective for some
data, and its evaluation.  It depends on neither features nor potentials; trainers request the part
of the scores they are about to move.  Settings for the arguments ``objective`` and ``task_loss`` of
estimators:

>>> from crfx.objectives import KL, Hamming
>>> Hamming(weights={"B": 2.0})
Hamming(weights={'B': 2.0}, normalize=False)
>>> KL(temperature=0.1)
KL(temperature=0.1, candidates=None, n_candidates=20, seed=0)
"""

from crfx.objectives.expected_loss import ExpectedLoss
from crfx.objectives.kl import KL
from crfx.objectives.loss_augmented import LossAugmented
from crfx.objectives.loss_scaled import LossScaled
from crfx.objectives.task_loss import CostMatrix, Hamming, SpanF1, ZeroOne

__all__ = [
    "KL",
    "CostMatrix",
    "ExpectedLoss",
    "Hamming",
    "LossAugmented",
    "LossScaled",
    "SpanF1",
    "ZeroOne",
]
