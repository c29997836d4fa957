"""Data sets that only published tables and benchmarks need; `crfx.datasets` has the others.

Each has one `load_…` function, and says where its data come from. They are looked for in
`$CRFX_DATA`, then in the user's cache (`crfx.datasets.files`).
"""

from reproduce.datasets.brown import Brown, load_brown
from reproduce.datasets.cb513 import CB513, load_cb513
from reproduce.datasets.conll2000 import Conll2000, load_conll2000
from reproduce.datasets.faq import Faq, load_faq
from reproduce.datasets.jpred4 import JPred4, load_jpred4
from reproduce.datasets.mq2007 import load_mq2007
from reproduce.datasets.treebank_sample import TreebankSample, load_treebank_sample
from reproduce.datasets.ud_ewt import UdEwt, load_ud_ewt

__all__ = [
    "CB513",
    "Brown",
    "Conll2000",
    "Faq",
    "JPred4",
    "TreebankSample",
    "UdEwt",
    "load_brown",
    "load_cb513",
    "load_conll2000",
    "load_faq",
    "load_jpred4",
    "load_mq2007",
    "load_treebank_sample",
    "load_ud_ewt",
]
