"""Takes a name, gives X and y; comes after nothing, before `batch`.

One file per data set; each has one `load_…` function and says where its data come from. Those
that are not bundled are looked for in `$CRFX_DATA`, then in the user's cache (`files`).
"""

from crfx.datasets.brown import Brown, load_brown
from crfx.datasets.cb513 import CB513, load_cb513
from crfx.datasets.conll2000 import Conll2000, Conll2000Split, Conll2000Token, load_conll2000
from crfx.datasets.conll2003 import Conll2003, Conll2003Split, Conll2003Token, load_conll2003
from crfx.datasets.digit_strings import DigitStrings, load_digit_strings
from crfx.datasets.faq import Faq, load_faq
from crfx.datasets.jpred4 import JPred4, load_jpred4
from crfx.datasets.mq2007 import load_mq2007
from crfx.datasets.mq2008 import MillionQuery, RankingFold, load_mq2008
from crfx.datasets.ocr import Ocr, load_ocr
from crfx.datasets.qian_sejnowski import QianSejnowski, QianSejnowskiSplit, load_qian_sejnowski
from crfx.datasets.sst import Sst, SstSplit, load_sst
from crfx.datasets.treebank_sample import TreebankSample, load_treebank_sample
from crfx.datasets.ud_ewt import UdEwt, UdEwtSplit, load_ud_ewt
from crfx.datasets.word_vectors import WordVectors, load_word_vectors

__all__ = [
    "CB513",
    "Brown",
    "Conll2000",
    "Conll2000Split",
    "Conll2000Token",
    "Conll2003",
    "Conll2003Split",
    "Conll2003Token",
    "DigitStrings",
    "Faq",
    "JPred4",
    "MillionQuery",
    "Ocr",
    "QianSejnowski",
    "QianSejnowskiSplit",
    "RankingFold",
    "Sst",
    "SstSplit",
    "TreebankSample",
    "UdEwt",
    "UdEwtSplit",
    "WordVectors",
    "load_brown",
    "load_cb513",
    "load_conll2000",
    "load_conll2003",
    "load_digit_strings",
    "load_faq",
    "load_jpred4",
    "load_mq2007",
    "load_mq2008",
    "load_ocr",
    "load_qian_sejnowski",
    "load_sst",
    "load_treebank_sample",
    "load_ud_ewt",
    "load_word_vectors",
]
