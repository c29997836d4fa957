"""Named entities in English newswire: the CoNLL-2003 shared task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.files import find, read_blocks

_SHA256 = {
    "eng.train": "eac0822f501353f265383ddf1edb0dcd42a1b6eefd3e383d7074db98c38eb41c",
    "eng.testa": "aedc4ccbd1ae9795feaa0e86fe72d195b0258abed9d705b630d1c889276fac1e",
    "eng.testb": "0632f32c090ef31c223135b7fee3187a7cf8e65c4015c7866bb7783428cdd9a6",
}
_HOW_TO_GET = (
    "The annotation is at https://www.clips.uantwerpen.be/conll2003/ner/ and needs the Reuters "
    "Corpus; https://github.com/suryasumukh/conll-ner has the joined files in data/."
)


class Conll2003Token(NamedTuple):
    """A word with its part of speech and chunk, both automatic; the chunks are IOB1."""

    word: str
    pos: str
    chunk: str


@dataclass(frozen=True, eq=False, slots=True)
class Conll2003Split:
    """Sentences: tokens, their entity tags, and the number of the document.

    Tags are IOB1: `I-PER` inside an entity, `B-PER` where one directly follows another of its
    type, `O` outside.
    """

    X: list[list[Conll2003Token]]
    y: list[NDArray[np.str_]]
    documents: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Conll2003:
    """The official split: `train`, `testa` for development, `testb` for tests."""

    train: Conll2003Split
    testa: Conll2003Split
    testb: Conll2003Split
    description: str


def load_conll2003() -> Conll2003:
    """Load CoNLL-2003: sentences with their entities.

    Lines ``-DOCSTART-`` are left out, as in published counts.

    Returns
    -------
    Conll2003
        ``train``, ``testa`` for development, and ``testb`` for tests.

    Raises
    ------
    FileNotFoundError
        If the data set is missing; the error says where to get it.

    Examples
    --------
    >>> data = load_conll2003()  # doctest: +SKIP
    >>> len(data.train.y)  # doctest: +SKIP
    14041
    """
    train, testa, testb = (_read(find_conll2003(name)) for name in _SHA256)
    return Conll2003(
        train,
        testa,
        testb,
        description=(
            "CoNLL-2003 English: Reuters news of 1996 with persons, organisations, locations and "
            "others (Tjong Kim Sang and De Meulder 2003); 14,041 / 3,250 / 3,453 sentences, "
            "203,621 / 51,362 / 46,435 tokens; research use only"
        ),
    )


def find_conll2003(name: str) -> Path:
    """Return the path of ``eng.train``, ``eng.testa`` or ``eng.testb``."""
    return find("conll2003", name, _SHA256[name], how_to_get=_HOW_TO_GET)


def _read(path: Path) -> Conll2003Split:
    X, y, documents = [], [], []
    document = -1
    for block in read_blocks(path):
        if block[0].startswith("-DOCSTART-"):
            document += 1
            continue
        words, pos, chunks, tags = zip(*(line.split(" ") for line in block), strict=True)
        X.append(list(map(Conll2003Token, words, pos, chunks)))
        y.append(np.array(tags))
        documents.append(document)
    return Conll2003Split(X, y, np.array(documents, dtype=np.int64))
