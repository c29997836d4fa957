"""English web text with dependency trees: Universal Dependencies EWT, release 2.16."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from crfx.datasets.files import find, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_SHA256 = {
    "train": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
    "dev": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
    "test": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
}
_HOW_TO_GET = (
    "It is in https://github.com/UniversalDependencies/UD_English-EWT, release 2.16 (commit "
    "15d613d8447b3478787d4c278730a1e48a945efb)."
)


@dataclass(frozen=True, eq=False, slots=True)
class UdEwtSplit:
    """Per sentence its words, three labellings of them, and their tree; the document it is in.

    `parents` counts within the sentence and is -1 at the root; each sentence has one root.
    `upos` is the universal tag, `xpos` the Penn tag, `deprel` the relation to the parent.
    """

    tokens: list[list[str]]
    upos: list[NDArray[np.str_]]
    xpos: list[NDArray[np.str_]]
    deprel: list[NDArray[np.str_]]
    parents: list[NDArray[np.int64]]
    documents: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class UdEwt:
    """The official split."""

    train: UdEwtSplit
    dev: UdEwtSplit
    test: UdEwtSplit
    description: str


def load_ud_ewt() -> UdEwt:
    """Load the sentences and their trees."""
    train, dev, test = (
        _read(find("ud-ewt", f"en_ewt-ud-{part}.conllu", sha256, how_to_get=_HOW_TO_GET))
        for part, sha256 in _SHA256.items()
    )
    return UdEwt(
        train,
        dev,
        test,
        description=(
            "Universal Dependencies English EWT 2.16 (Silveira et al. 2014): weblogs, newsgroups, "
            "emails, reviews and answers; 12,544 / 2,001 / 2,077 sentences, 204,577 / 25,147 / "
            "25,094 words; annotations CC BY-SA 4.0, texts (c) their owners"
        ),
    )


def _read(path: Path) -> UdEwtSplit:
    split = UdEwtSplit([], [], [], [], [], np.array([], dtype=np.int64))
    documents, document = [], -1
    for block in read_blocks(path):
        document += any(line.startswith("# newdoc") for line in block)
        documents.append(document)
        rows = [line.split("\t") for line in block if not line.startswith("#")]
        # Lines 3-4 (two words written as one) and 5.1 (a word left out) are not in the tree.
        columns = list(zip(*(row for row in rows if row[0].isdecimal()), strict=True))
        split.tokens.append(list(columns[1]))
        split.upos.append(np.array(columns[3]))
        split.xpos.append(np.array(columns[4]))
        split.deprel.append(np.array(columns[7]))
        # Heads count from 1 and are 0 at the root.
        split.parents.append(np.array(columns[6], dtype=np.int64) - 1)
    return replace(split, documents=np.array(documents, dtype=np.int64))
