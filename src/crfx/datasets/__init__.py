"""Takes a name, gives X and y; comes after nothing, before `batch`.

One file per data set; each has one `load_…` function and says where its data come from. Those
that are not bundled are looked for in `$CRFX_DATA`, then in the user's cache (`files`).
"""

from crfx.datasets.conll2003 import Conll2003, Conll2003Split, Conll2003Token, load_conll2003
from crfx.datasets.digit_strings import DigitStrings, load_digit_strings
from crfx.datasets.mq2008 import MillionQuery, RankingFold, load_mq2008
from crfx.datasets.ocr import Ocr, load_ocr
from crfx.datasets.qian_sejnowski import QianSejnowski, QianSejnowskiSplit, load_qian_sejnowski
from crfx.datasets.sst import Sst, SstSplit, load_sst
from crfx.datasets.word_vectors import WordVectors, load_word_vectors

__all__ = [
    "Conll2003",
    "Conll2003Split",
    "Conll2003Token",
    "DigitStrings",
    "MillionQuery",
    "Ocr",
    "QianSejnowski",
    "QianSejnowskiSplit",
    "RankingFold",
    "Sst",
    "SstSplit",
    "WordVectors",
    "load_conll2003",
    "load_digit_strings",
    "load_mq2008",
    "load_ocr",
    "load_qian_sejnowski",
    "load_sst",
    "load_word_vectors",
]
