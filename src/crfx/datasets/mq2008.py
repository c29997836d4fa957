"""Queries of TREC's Million Query track 2008 on pages of .gov: LETOR 4.0's MQ2008.

Qin and Liu, Introducing LETOR 4.0 Datasets (arXiv:1306.2597, 2013).  Features are those of the
supervised setting, normalised per query.  Documents are 2 highly relevant, 1 relevant, 0 not.
"""

from __future__ import annotations

from dataclasses import dataclass

from crfx.datasets.files import find_all
from crfx.io import letor
from crfx.io.letor import Rankings

N_PARTS = 5
_SHA256 = {
    "S1.txt": "cbd42504549a2388f6c0aefdb506f22074225b574c7a5df10194174c9b00e4e0",
    "S2.txt": "055ac792cb8f7d5a029090b8acbfb6c57323339d1371251bf2465ac182aa8605",
    "S3.txt": "a03fe2b6e76479de60fecdb37d560a40a4e899b0cd685553d2da31ea205af1ab",
    "S4.txt": "a239850bc6fe960ad08c2b7b0d99db90fe976dd93a15358e98036591b4e7a2ac",
    "S5.txt": "c68c52feb1ecae7f17b64c8e2fda2098302681bbd4ea5fad8c73a1d32a1cf2b2",
}
_HOW_TO_GET = (
    "It is data/MQ2008/S1.txt to S5.txt of https://github.com/meta-toolkit/meta, the parts that "
    "the folds of LETOR 4.0 are made of."
)


@dataclass(frozen=True, eq=False, slots=True)
class RankingFold:
    """A fold: parts for training, for choosing settings, and for testing."""

    train: Rankings
    validation: Rankings
    test: Rankings


@dataclass(frozen=True, eq=False, slots=True)
class MillionQuery:
    """The five parts, S1 to S5."""

    parts: tuple[Rankings, ...]
    description: str

    def fold(self, k: int) -> RankingFold:
        """Return LETOR's fold `k`, 1 to 5: three parts from `k` on, cyclically, then two of one."""
        if k not in range(1, N_PARTS + 1):
            raise ValueError(f"there is no fold {k}: folds are 1 to {N_PARTS}")
        ordered = [self.parts[(k - 1 + step) % N_PARTS] for step in range(N_PARTS)]
        return RankingFold(letor.join(ordered[:3]), ordered[3], ordered[4])


def load_mq2008() -> MillionQuery:
    """Load MQ2008 of LETOR 4.0: 784 queries with judged documents.

    Returns
    -------
    MillionQuery
        Its method ``fold`` returns the official folds.

    Raises
    ------
    FileNotFoundError
        If the data set is missing; the error says where to get it.

    Examples
    --------
    >>> data = load_mq2008()  # doctest: +SKIP
    >>> data.fold(1).train.X.shape[1]  # doctest: +SKIP
    46
    """
    paths = find_all("letor-mq2008", _SHA256, how_to_get=_HOW_TO_GET)
    return MillionQuery(
        tuple(letor.read(path) for path in paths),
        description=(
            "LETOR 4.0 MQ2008 (Qin and Liu 2013): 784 queries, 15,211 documents, 46 features "
            "normalised per query, 3 levels of relevance, 5 folds; for research"
        ),
    )
