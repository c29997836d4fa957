"""Secondary structure of proteins with profiles: the JPred4 training and blind sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfx.datasets.files import find
from crfx.datasets.folds import held_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHA256 = "7b1c6256caf19a6f8d8fb8455dae0ea5427a26d109f53177184c3f2c511fa1b2"
_HOW_TO_GET = (
    "It was packed for crfx from the .fasta, .dssp, .pssm and .hmm files in "
    "https://github.com/JiaGengChang/JPred4_retraining."
)
_AMINO_ACIDS, _Q3, _Q8 = "ARNDCQEGHILKMFPSTWYVX", "HE-", "-BEGIHST"
_NOT_KNOWN = 255


@dataclass(frozen=True, eq=False, slots=True)
class JPred4:
    """Per protein domain the profile (length, 44) and the classes of its residues (length,).

    Columns 0 to 19 of `X` are PSI-BLAST scores s as JNet takes them, 1 / (1 + exp(-s)), amino
    acids in the order `ARNDCQEGHILKMFPSTWYV`; 20 to 39 an HMM profile in the order
    `ACDEFGHIKLMNPQRSTVWY`; 40 to 43 belong to that profile and are not documented.
    `q3` are the classes `H`, `E` and `-`, `q8` those of `-BEGIHST`; ten training domains have
    no `q8`, theirs are all None. `residues` are amino acids, `X` unknown.
    Fold 0 is the blind set, folds 1 to 7 are for training.
    """

    X: list[NDArray[np.float32]]
    q3: list[NDArray[np.str_]]
    q8: list[NDArray[np.str_] | NDArray[np.object_]]
    residues: list[str]
    names: list[str]
    folds: NDArray[np.int64]
    description: str

    def fold(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the domains to train on, outside fold `k` and not blind, and those in fold `k`.

        `fold(0)` is all training domains and the blind set.
        """
        train, test = held_out(self.folds, k)
        return train[self.folds[train] != 0], test


def load_jpred4() -> JPred4:
    """Load the 1,498 domains, training first."""
    path = find("jpred4", "jpred4.npz", _SHA256, how_to_get=_HOW_TO_GET)
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    cuts = arrays["offsets"][1:-1]
    return JPred4(
        X=np.split(_profile(arrays), cuts),
        q3=np.split(np.array(list(_Q3))[arrays["q3"]], cuts),
        q8=[_eight_classes(codes) for codes in np.split(arrays["q8"], cuts)],
        residues=[
            "".join(letters)
            for letters in np.split(np.array(list(_AMINO_ACIDS))[arrays["residues"]], cuts)
        ],
        names=[name.decode() for name in arrays["names"].tolist()],
        folds=arrays["fold"].astype(np.int64),
        description=(
            "JPred4 (Drozdetskiy et al. 2015): protein domains, one per superfamily, with "
            "PSI-BLAST and HMM profiles, 3 and 8 classes; 1,348 domains of 218,421 residues in 7 "
            "folds to train, 150 of 22,796 blind; not filtered against CB513; terms not stated"
        ),
    )


def _profile(arrays: dict[str, NDArray[np.generic]]) -> NDArray[np.float32]:
    pssm = arrays["pssm"].astype(np.float32)
    hmm = arrays["hmm_values"][arrays["hmm_code"]]
    return np.hstack([1 / (1 + np.exp(-pssm)), hmm]).astype(np.float32, copy=False)


def _eight_classes(codes: NDArray[np.uint8]) -> NDArray[np.str_] | NDArray[np.object_]:
    if (codes == _NOT_KNOWN).all():
        return np.full(len(codes), None)
    return np.array(list(_Q8))[codes]
