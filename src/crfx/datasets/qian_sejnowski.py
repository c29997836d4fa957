"""Secondary structure of proteins from amino acids alone: Qian and Sejnowski (1988)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.files import find_all, open_text

_SHA256 = {
    "protein-secondary-structure.train": (
        "089030a3224116ffce9972c945b1487f0b594705189d4b7645e9e0fb6c0b5f5a"
    ),
    "protein-secondary-structure.test": (
        "b794c73169bc50c88826b72332653db79415d8cca234ceb7a05232cffb5f2f9d"
    ),
}
# UCI has the set too, but copies differ in their headers and some lack a line.
_HOW_TO_GET = "An unchanged copy is in https://github.com/rycw22/LSTM_AlphaHelicies."
_AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"


@dataclass(frozen=True, eq=False, slots=True)
class QianSejnowskiSplit:
    """Chains: amino acids, as letters and as indicators `X` (length, 20), and the classes.

    Columns of `X` are in the order `ARNDCQEGHILKMFPSTWYV`; the classes `y` are `h` (helix),
    `e` (sheet) and `_` (coil).
    """

    X: list[NDArray[np.float32]]
    y: list[NDArray[np.str_]]
    residues: list[str]


@dataclass(frozen=True, eq=False, slots=True)
class QianSejnowski:
    """The split of the paper."""

    train: QianSejnowskiSplit
    test: QianSejnowskiSplit
    description: str


def load_qian_sejnowski() -> QianSejnowski:
    """Load the proteins of Qian and Sejnowski: amino acids with their classes.

    Returns
    -------
    QianSejnowski
        ``train`` and ``test``.

    Raises
    ------
    FileNotFoundError
        If the data set is missing; the error says where to get it.

    Examples
    --------
    >>> data = load_qian_sejnowski()  # doctest: +SKIP
    >>> data.train.X[0].shape[1]  # doctest: +SKIP
    20
    """
    train, test = map(_read, find_all("qian-sejnowski", _SHA256, how_to_get=_HOW_TO_GET))
    return QianSejnowski(
        train,
        test,
        description=(
            "Qian and Sejnowski (1988): amino acids and 3 classes of secondary structure; 111 "
            "chains of 18,105 residues to train, 17 of 3,520 to test; (c) 1988 Terrence J. "
            "Sejnowski, non-commercial research only"
        ),
    )


def _read(path: Path) -> QianSejnowskiSplit:
    """Parse `<>`, which starts a chain, and lines of an amino acid and its class.

    Some ends of proteins are marked too; these marks are ignored.
    """
    chains: list[list[list[str]]] = []
    with open_text(path) as file:
        for line in file:
            match line.split():
                case ["<>"]:
                    chains.append([])
                case [residue, label] if residue in _AMINO_ACIDS:
                    chains[-1].append([residue, label])
    residues = ["".join(residue for residue, _ in chain) for chain in chains]
    return QianSejnowskiSplit(
        X=[_indicators(letters) for letters in residues],
        y=[np.array([label for _, label in chain]) for chain in chains],
        residues=residues,
    )


def _indicators(letters: str) -> NDArray[np.float32]:
    codes = [_AMINO_ACIDS.index(letter) for letter in letters]
    return np.eye(len(_AMINO_ACIDS), dtype=np.float32)[codes]
