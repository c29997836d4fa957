"""Figures 1 to 4 of Dietterich, Ashenfelder and Bulatov (2004): proteins and lines of FAQs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfx.datasets import load_qian_sejnowski
from crfx.datasets.folds import held_out
from crfx.features import windows
from crfx.metrics import token_accuracy
from reproduce.datasets import load_faq
from reproduce.experiments import ocr
from reproduce.experiments.task import Outcome, Task
from reproduce.experiments.training import Part, accuracy, effort, fit, predict

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
N_FOLDS = 10
N_PROTEIN_FOLDS = 5
_SHARED, _LETTERS = 3, 5  # so many common stretches of so many letters make two chains relatives


@dataclass(frozen=True, slots=True)
class ProteinOptions:
    """`features`: "letters", one column of categories, or "indicators", 20 columns; and with
    `neighbours` on either side, for estimators without a window of their own, such columns or
    "names", texts of place and letter.

    `train` and `test` limit the number of chains.
    """

    features: str = "letters"
    neighbours: int = 0
    train: int | None = None
    test: int | None = None


def protein(task: Task) -> Outcome:
    """Share of residues with the right class, in percent, by round and by both decoders.

    Units: "test", the 17 chains; and "folds", within the training chains, to choose settings and
    the number of rounds: five folds, relatives in the same one.
    """
    options = task.options(ProteinOptions)
    if task.unit == "folds":
        return _cross_validated(task, options)
    if task.unit != "test":
        raise ValueError("units are 'test', and 'folds' to choose settings")
    train, test = (
        _chains(options, part).limited(limit)
        for part, limit in (("train", options.train), ("test", options.test))
    )
    # Watched and no more: the curve is the paper's figure, and its peak is a peak on test.
    estimator = fit(task, train, validation=test)
    curves = _by_round(estimator, test)
    right = _right(estimator, test)
    figures = {
        "accuracy": 100 * float(np.mean(right)),
        **{f"peak_{name}": max(curve) for name, curve in curves.items()},
        **{f"{name}": curve[-1] for name, curve in curves.items()},
    }
    spent = {"seconds": np.cumsum(estimator.history_["seconds"]).tolist()}
    return Outcome({**figures, **effort(estimator, train)}, {**curves, **spent, "right": right})


def _by_round(estimator: Any, part: Part) -> dict[str, list[float]]:
    """Accuracy after every round, by best labelling and by best label of each position."""
    if not hasattr(estimator, "n_rounds_"):
        return {"viterbi": [100 * value for value in estimator.history_["eval_metric"]]}
    curves: dict[str, list[float]] = {"viterbi": [], "marginal": []}
    for n_rounds in range(1, estimator.n_rounds_ + 1):
        for decode, curve in curves.items():
            estimator.set_params(decode=decode)
            predicted = estimator.predict(part.X, n_rounds=n_rounds)
            curve.append(100 * token_accuracy(part.y, predicted))
    estimator.set_params(decode="marginal")
    return curves


def _right(estimator: Any, part: Part) -> list[float]:
    """1 where a position has the right label, else 0: for tests between methods."""
    pairs = zip(part.y, predict(estimator, part), strict=True)
    return [
        float(same)
        for true, predicted in pairs
        for same in np.asarray(true) == np.asarray(predicted)
    ]


def _cross_validated(task: Task, options: ProteinOptions) -> Outcome:
    whole = _chains(options, "train")
    folds = relative_folds(load_residues("train"), N_PROTEIN_FOLDS)
    rights: list[NDArray[np.float64]] = []
    n_judged = 0
    for fold in range(N_PROTEIN_FOLDS):
        train, judged = (whole.take(chosen) for chosen in held_out(folds, fold))
        train, judged = train.limited(options.train), judged.limited(options.test)
        estimator = fit(task, train, validation=judged)
        n_positions = sum(map(len, judged.y))
        n_judged += n_positions
        rights.append(n_positions * np.array(estimator.history_["eval_metric"]))
    n_rounds = min(map(len, rights))  # L-BFGS may stop early
    curve = np.sum([right[:n_rounds] for right in rights], axis=0)
    shown = (100 * curve / n_judged).tolist()
    best = int(np.argmax(shown))
    return Outcome(
        {"accuracy": shown[best], "best_rounds": best + 1, "last": shown[-1]}, {"accuracy": shown}
    )


@cache
def load_residues(part: str) -> list[str]:
    """Return the letters of all chains."""
    residues: list[str] = getattr(load_qian_sejnowski(), part).residues
    return residues


@cache
def _chains(options: ProteinOptions, part: str) -> Part:
    split = getattr(load_qian_sejnowski(), part)
    if options.features == "indicators":
        side = options.neighbours
        return Part(list(windows(split.X, side, side, outside=0.0)), list(split.y))
    if options.features == "names":
        named = [letter_names(chain, options.neighbours) for chain in split.residues]
        return Part(named, list(split.y))
    if options.features != "letters":
        raise ValueError(
            f"features is {options.features!r}: choose 'letters', 'indicators' or 'names'"
        )
    if options.neighbours:
        raise ValueError("neighbours are for indicators: the window is the estimator's")
    return Part([letter_frame(chain) for chain in split.residues], list(split.y))


def letter_frame(chain: str) -> Any:
    """Return a frame with one column of categories."""
    import pandas

    letters = pandas.Categorical(list(chain), categories=list(AMINO_ACIDS))
    return pandas.DataFrame({"residue": letters})


def letter_names(chain: str, neighbours: int) -> list[list[str]]:
    """Texts of place and letter; a dot beyond the ends.

    >>> letter_names("AR", 1)
    [['-1.', '0A', '1R'], ['-1A', '0R', '1.']]
    """
    padded = "." * neighbours + chain + "." * neighbours
    return [
        [f"{place - neighbours}{padded[at + place]}" for place in range(2 * neighbours + 1)]
        for at in range(len(chain))
    ]


def relative_folds(chains: Sequence[str], n_folds: int) -> NDArray[np.int64]:
    """Deal chains into folds of nearly equal size so that relatives, and theirs, stay together.

    >>> relative_folds(["ARNDCQEG", "HHHHH", "CARNDCQEG"], 2)
    array([0, 1, 0])
    """
    stretches = [
        {chain[at : at + _LETTERS] for at in range(len(chain) - _LETTERS + 1)} for chain in chains
    ]
    family = list(range(len(chains)))
    for one in range(len(chains)):
        for other in range(one):
            if len(stretches[one] & stretches[other]) >= _SHARED and family[one] != family[other]:
                joined, kept = family[one], family[other]
                family = [kept if each == joined else each for each in family]
    sizes = dict.fromkeys(family, 0)
    for each, chain in zip(family, chains, strict=True):
        sizes[each] += len(chain)
    filled, fold_of = [0] * n_folds, {}
    for each in sorted(sizes, key=lambda each: -sizes[each]):
        fold_of[each] = filled.index(min(filled))
        filled[fold_of[each]] += sizes[each]
    return np.array([fold_of[each] for each in family], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FaqOptions:
    """Lines have the features of `neighbours` on either side (for estimators without a window of
    their own), as columns or, with `named`, as texts of those whose value is `value` (0 where a
    feature is present: they are few); `train` and `test` limit the number of files.
    """

    neighbours: int = 0
    named: bool = False
    value: int = 1
    train: int | None = None
    test: int | None = None


def faq(task: Task) -> Outcome:
    """Error per line, in percent, and by round.

    Units are folds, or a half of the folds, to choose settings: trained on four, judged on the
    fifth.
    """
    options = task.options(FaqOptions)
    whole, folds = _files(options.neighbours, options.value if options.named else None)
    if task.unit in ocr.HALVES:
        *first, judged = ocr.HALVES[task.unit]
        train, test = (
            whole.take(np.flatnonzero(np.isin(folds, chosen))) for chosen in (first, judged)
        )
    else:
        train, test = (whole.take(chosen) for chosen in held_out(folds, task.fold(N_FOLDS)))
    train, test = train.limited(options.train), test.limited(options.test)
    # Watched and no more, for the figure: no round is chosen by it.
    estimator = fit(task, train, validation=test)
    history = estimator.history_
    errors = [100 * (1 - right) for right in history["eval_metric"]]
    return Outcome(
        {
            "error": 100 - accuracy(estimator, test),
            "lowest": min(errors),
            **effort(estimator, train),
        },
        {
            "correct": [100 - error for error in errors],
            "seconds": np.cumsum(history["seconds"]).tolist(),
            "right": _right(estimator, test),
        },
    )


@cache
def _files(neighbours: int, value: int | None) -> tuple[Part, NDArray[np.int64]]:
    data = load_faq(n_folds=N_FOLDS)
    X: list[Any] = list(windows(data.X, neighbours, neighbours)) if neighbours else data.X
    if value is not None:
        X = [[[str(column) for column in np.flatnonzero(line == value)] for line in x] for x in X]
    return Part(X, list(data.y)), data.folds
