"""How the trainers that sweep over instances descend, from the arguments of an estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils import check_random_state

from crfx.trainers.sgd import Descent

if TYPE_CHECKING:
    from crfx.estimators.linear import LinearCRF

SWEEPS_TO_HALF = 10.0
"""After so many sweeps the steps of SGD have half their size."""


def penalty(crf: LinearCRF) -> float:
    """The L2 penalty, which is None for the one that suits the trainer."""
    if crf.l2 is not None:
        return crf.l2
    return 1.0 if crf.trainer in ("lbfgs", "sgd") else 0.0


def seeks_step(crf: LinearCRF) -> bool:
    """Whether the first step is to be found by trials."""
    return crf.step is None and crf.trainer == "sgd"


def descent_of(crf: LinearCRF, n_instances: int) -> Descent:
    """How the trainers that sweep over the instances descend."""
    is_sgd = crf.trainer == "sgd"
    batch_size = crf.batch_size or (8 if is_sgd else 1)
    burn_in = crf.burn_in
    if burn_in is None:
        burn_in = crf.sweeps // 2 if is_sgd else 0
    return Descent(
        n_instances=n_instances,
        batch_size=batch_size,
        step=1.0 if crf.step is None else crf.step,
        period=SWEEPS_TO_HALF * n_instances / batch_size if is_sgd else None,
        l2=penalty(crf),
        burn_in=burn_in,
        seed=int(check_random_state(crf.random_state).randint(2**31 - 1)),
    )
