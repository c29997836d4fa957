"""Secondary structure of proteins with PSI-BLAST profiles: CB513 (Cuff and Barton 1999).

Profiles and three classes are from the file of van der Maaten, Welling and Saul (2011), eight
classes from Zhou and Troyanskaya's (2014) copy, joined by sequence. The profiles are not Zhou
and Troyanskaya's, so figures against papers that used theirs are indicative.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfx.datasets.files import find, open_text
from crfx.datasets.folds import held_out
from reproduce.datasets.folds import random_folds

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_PROFILES = "cb513_psiblast.mat"
_PROFILES_SHA256 = "8cc29f01dd9ca63e4174ba285349a90e64b89530f5c5627984b7adc170351ca2"
_PROFILES_HOW_TO_GET = (
    "It is data/cb513_psiblast.mat of https://github.com/senthilps8/dropout_hucrf."
)
_CLASSES = "cb513.npy.csv"
_CLASSES_SHA256 = "3d37f92c42a881e90f4fb0afcd5c1bff233d7a2a4c95fcfed9af7bc6e2b63b54"
_CLASSES_HOW_TO_GET = "It is model_3/cb513.npy.csv of https://github.com/idrori/cu-ssp."
_AMINO_ACIDS, _Q3 = "ARNDCQEGHILKMFPSTWYV", "HEC"


@dataclass(frozen=True, eq=False, slots=True)
class CB513:
    """Per protein the profile (length, 20) and the classes of its residues (length,).

    Columns of `X` are amino acids in the order `ARNDCQEGHILKMFPSTWYV`, values 0 to 1 in steps of
    0.1. `q3` are the classes `H`, `E` and `C`, `q8` those of `LBEGIHST` (L is coil). `residues`
    are amino acids, `X` another. There is no official split; `folds` keeps proteins apart.
    """

    X: list[NDArray[np.float32]]
    q3: list[NDArray[np.str_]]
    q8: list[NDArray[np.str_]]
    residues: list[str]
    folds: NDArray[np.int64]
    description: str

    def fold(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the proteins outside fold `k`, to train on, and those inside, to test on."""
        return held_out(self.folds, k)


def load_cb513(n_folds: int = 10, seed: int = 0) -> CB513:
    """Load the 513 proteins; `seed` deals them into folds.

    The 2011 paper trained on 2x - 1 in windows of 13 positions, zero beyond the ends, and gave
    the error per residue on three classes in ten such folds.
    """
    from scipy.io import loadmat  # slow to import, and not needed to name the loader

    profiles = find("cb513", _PROFILES, _PROFILES_SHA256, how_to_get=_PROFILES_HOW_TO_GET)
    classes = find("cb513", _CLASSES, _CLASSES_SHA256, how_to_get=_CLASSES_HOW_TO_GET)
    cells = loadmat(profiles)
    residues = [_letters(inputs[:20]) for inputs in cells["X"][:, 0]]
    return CB513(
        X=[np.ascontiguousarray(inputs[20:].T, dtype=np.float32) for inputs in cells["X"][:, 0]],
        q3=[np.array(list(_Q3))[targets[0] - 1] for targets in cells["T"][:, 0]],
        q8=_eight_classes(classes, residues),
        residues=residues,
        folds=random_folds(len(residues), n_folds, seed),
        description=(
            "CB513 (Cuff and Barton 1999): 513 proteins, 84,119 residues with PSI-BLAST profiles, "
            f"3 and 8 classes, {n_folds} random folds of proteins; non-commercial use only"
        ),
    )


def _letters(one_hot: NDArray[np.float64]) -> str:
    codes = np.where(one_hot.any(axis=0), one_hot.argmax(axis=0), len(_AMINO_ACIDS))
    return "".join(np.array([*_AMINO_ACIDS, "X"])[codes])


def _eight_classes(path: Path, sequences: list[str]) -> list[NDArray[np.str_]]:
    """Find each sequence among the rows of the file, whole or in two overlapping pieces."""
    with open_text(path) as file:
        classes = {row["input"]: row["expected"] for row in csv.DictReader(file)}
    longest = max(map(len, classes))  # what is longer was cut to this length, from both ends
    arrays = []
    for sequence in sequences:
        # A sequence that was not cut is its own head and tail, and overlaps itself wholly.
        head, tail = classes[sequence[:longest]], classes[sequence[-longest:]]
        overlap = 2 * longest - len(sequence)
        arrays.append(np.array(list(head + tail[overlap:])))
    return arrays
