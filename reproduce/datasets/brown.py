"""American English of 1961 with parts of speech: the Brown corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfx.datasets.files import find, read_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHA256 = "7f2fbf3e4bef893afec49c01a5e0a5889a5ffef28ab877abfc9d99d081d8437b"
_HOW_TO_GET = (
    "Its 500 texts are in packages/corpora/brown.zip of https://github.com/nltk/nltk_data (branch "
    "gh-pages): join them in name order, with a line '# NAME CATEGORY' before each, and make white "
    "space within a line one space."
)


@dataclass(frozen=True, eq=False, slots=True)
class Brown:
    """Per sentence the words and their tags; which of the 500 texts it is in, and of what kind."""

    X: list[list[str]]
    y: list[NDArray[np.str_]]
    texts: NDArray[np.str_]
    categories: NDArray[np.str_]
    description: str


def load_brown() -> Brown:
    """Load the sentences, in the order of the texts."""
    X, y, texts, categories = [], [], [], []
    text, category = "", ""
    path = find("brown", "brown.txt", _SHA256, how_to_get=_HOW_TO_GET)
    for line in (line for block in read_blocks(path) for line in block):
        if line.startswith("# "):
            _, text, category = line.split(" ")
            continue
        words, tags = zip(*(token.rsplit("/", 1) for token in line.split(" ")), strict=True)
        X.append(list(words))
        y.append(np.array(tags))
        texts.append(text)
        categories.append(category)
    return Brown(
        X,
        y,
        np.array(texts),
        np.array(categories),
        description=(
            "Brown corpus (Francis and Kucera 1964, 1979): 57,340 sentences and 1,161,192 tokens "
            "of 500 texts in 15 categories, 472 tags; for non-commercial purposes"
        ),
    )
