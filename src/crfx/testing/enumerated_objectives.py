"""Objectives on configurations that are listed: energies and losses in, value and gradient out.

Volkovs, Larochelle and Zemel (2011), sections 2 to 4.  p(y) is proportional to exp(-energy(y)).
A configuration of loss 0 is a ground truth; there may be several, and they then count alike: the
likelihoods take the mean of log p over them (``truths="sum"`` is the paper's Eq. 10), and the
loss-scaled energy is measured from their mean energy (Eq. 11).

All functions take (..., n) arrays, lists of n configurations each, an energy of +inf where a list
is shorter, and give values (...,) and the gradient in the energies (..., n).  O(n).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Array64 = npt.NDArray[np.float64]
Truths = Literal["mean", "sum"]


class Enumerated(NamedTuple):
    """Value of each list and its gradient in the energies."""

    value: Array64
    gradient: Array64


def likelihood(
    energies: npt.ArrayLike, losses: npt.ArrayLike, *, truths: Truths = "mean"
) -> Enumerated:
    """Return minus log p of the truth (Eq. 2; Eq. 10 if there are several)."""
    E, loss = _checked(energies, losses)
    return _likelihood(E, _uniform_over_truths(E, loss), truths)


def loss_augmented(
    energies: npt.ArrayLike,
    losses: npt.ArrayLike,
    *,
    weight: float = 1.0,
    truths: Truths = "mean",
) -> Enumerated:
    """Return the likelihood with every energy lower by ``weight`` times its loss (Eq. 4)."""
    E, loss = _checked(energies, losses)
    return _likelihood(E - weight * loss, _uniform_over_truths(E, loss), truths)


def loss_scaled(energies: npt.ArrayLike, losses: npt.ArrayLike) -> Enumerated:
    """Return the log of the sum of exp(loss * (1 + energy of the truth - energy)) (Eq. 5, 11)."""
    E, loss = _checked(energies, losses)
    uniform = _uniform_over_truths(E, loss)
    exists = np.isfinite(E)
    above_truth = np.where(exists, E, 0.0) - _mean(uniform, E)[..., None]
    scaled = np.where(exists, loss * (above_truth - 1.0), np.inf)
    log_z, p = _log_partition(scaled)
    pulled = p * loss
    return Enumerated(log_z, pulled.sum(axis=-1, keepdims=True) * uniform - pulled)


def expected_loss(energies: npt.ArrayLike, losses: npt.ArrayLike) -> Enumerated:
    """Return the expected loss of a configuration drawn from the model (Eq. 6 and 7)."""
    E, loss = _checked(energies, losses)
    _, p = _log_partition(E)
    value = (p * loss).sum(axis=-1)
    return Enumerated(value, p * (value[..., None] - loss))


def kl(energies: npt.ArrayLike, losses: npt.ArrayLike, *, temperature: float = 1.0) -> Enumerated:
    """Return the divergence of p from q, proportional to exp(-loss / temperature) (Eq. 8, 9).

    As the temperature falls to 0 it becomes the likelihood; with several truths the mean of log p
    over them, less the log of their number.
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature!r}: it must be above 0")
    E, loss = _checked(energies, losses)
    log_z, p = _log_partition(E)
    least = np.where(np.isinf(E), np.inf, loss).min(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):  # so cold that others than the best have no share
        target = np.where(np.isinf(E), np.inf, (loss - least) / temperature)
    log_q = -target - _log_partition(target)[0][..., None]
    q = np.exp(log_q)
    return Enumerated(_mean(q, log_q) + _mean(q, E) + log_z, q - p)


OBJECTIVES: dict[str, Callable[..., Enumerated]] = {
    "likelihood": likelihood,
    "loss_augmented": loss_augmented,
    "loss_scaled": loss_scaled,
    "expected_loss": expected_loss,
    "kl": kl,
}
"""Functions by the names that estimators know the objectives by."""


def _likelihood(E: Array64, uniform: Array64, truths: Truths) -> Enumerated:
    if truths not in ("mean", "sum"):
        raise ValueError(f"truths is {truths!r}: choose 'mean' or 'sum'")
    log_z, p = _log_partition(E)
    value, gradient = _mean(uniform, E) + log_z, uniform - p
    if truths == "mean":
        return Enumerated(value, gradient)
    count = (uniform > 0).sum(axis=-1)
    return Enumerated(count * value, count[..., None] * gradient)


def _checked(energies: npt.ArrayLike, losses: npt.ArrayLike) -> tuple[Array64, Array64]:
    E, loss = (np.asarray(array, np.float64) for array in (energies, losses))
    if E.shape != loss.shape or E.ndim == 0 or E.shape[-1] == 0:
        raise ValueError(
            f"energies have shape {E.shape}, losses {loss.shape}: both must list the same "
            "configurations, one or more"
        )
    if np.isnan(E).any() or np.isneginf(E).any():
        raise ValueError("energies must be numbers, or +inf where there is no configuration")
    if not np.isfinite(E).any(axis=-1).all():
        raise ValueError("a list has no configuration at all: all its energies are +inf")
    if not (np.isfinite(loss) & (loss >= 0)).all():
        raise ValueError("losses must be finite and 0 or more")
    return E, loss


def _uniform_over_truths(E: Array64, loss: Array64) -> Array64:
    """Return 1 / (number of truths) at each of them, else 0."""
    is_truth = (loss == 0) & np.isfinite(E)
    count = is_truth.sum(axis=-1, keepdims=True)
    if not count.all():
        raise ValueError("a list has no configuration of loss 0: there is no truth to compare with")
    return np.asarray(is_truth / count)


def _log_partition(E: Array64) -> tuple[Array64, Array64]:
    """Return the log of the sum of exp(-E), and the probabilities."""
    least = E.min(axis=-1, keepdims=True)
    p: Any = np.exp(least - E)
    total = p.sum(axis=-1, keepdims=True)
    return (np.log(total) - least)[..., 0], p / total


def _mean(weights: Array64, values: Array64) -> Array64:
    """Return the sum of weights times values, where a weight of 0 makes an infinite value 0."""
    return np.asarray((weights * np.where(weights > 0, values, 0.0)).sum(axis=-1))
