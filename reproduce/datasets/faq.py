"""Lines of Usenet FAQs: head, question, answer or tail (McCallum, Freitag and Pereira 2000).

The file is that of van der Maaten, Welling and Saul (2011): features only, not the texts, and
without their names. What can be seen in them: 0 means that a feature is present; column 7 is
"blank", column 8 is column 7 of the line before, column 6 its complement, column 10 is column 9
of the line before; columns 13 and 14 are constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfx.datasets.files import find
from crfx.datasets.folds import held_out
from reproduce.datasets.folds import random_folds

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHA256 = "1c77f54ee780164f121c8e878f7d19ef7ee00f81516b49e6e5a50c5684c8379c"
_HOW_TO_GET = "It is data/faqs.mat of https://github.com/senthilps8/dropout_hucrf."
# The names are not in the file; they follow from the order in which the labels come.
_LABELS = ("head", "question", "answer", "tail")


@dataclass(frozen=True, eq=False, slots=True)
class Faq:
    """Per file the features (lines, 24), 0 or 1, and the labels (lines,) of its lines.

    There is no official split; `folds` keeps files apart.
    """

    X: list[NDArray[np.float32]]
    y: list[NDArray[np.str_]]
    folds: NDArray[np.int64]
    description: str

    def fold(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the files outside fold `k`, to train on, and those inside, to test on."""
        return held_out(self.folds, k)


def load_faq(n_folds: int = 10, seed: int = 0) -> Faq:
    """Load the 48 files; `seed` deals them into folds.

    The 2011 paper added all 24 x 24 products of two features, mapped 0 and 1 to -1 and 1, and
    gave the error per line in ten such folds.
    """
    from scipy.io import loadmat  # slow to import, and not needed to name the loader

    cells = loadmat(find("faq", "faqs.mat", _SHA256, how_to_get=_HOW_TO_GET))
    X = [np.ascontiguousarray(lines.T > 0, dtype=np.float32) for lines in cells["X"][:, 0]]
    return Faq(
        X=X,
        y=[np.array(_LABELS)[labels[0] - 1] for labels in cells["labels"][:, 0]],
        folds=random_folds(len(X), n_folds, seed),
        description=(
            "Usenet FAQs (McCallum, Freitag and Pereira 2000, the file of van der Maaten, Welling "
            "and Saul 2011): 48 files, 62,497 lines, 24 binary features, 4 labels, "
            f"{n_folds} random folds of files; non-commercial use only"
        ),
    )
