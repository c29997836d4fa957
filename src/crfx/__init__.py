"""Conditional random fields whose potentials are learned functions.

The pipeline, from input to labels::

    X, y ─ `datasets` ─▶ `batch` ─▶ `structures` ─ potentials score the parts ─▶ `scores` ─ `_core`
      ─▶ `inference` ─▶ log Z, marginals, best labelling          (`testing`: oracles for all of it)
                                                     `cli` puts it at a terminal's reach

`batch` stacks instances without padding, `structures` says which parts an instance has, `scores`
is the one currency, `inference` runs sums and maxima over it in the compiled `_core`.
"""

from importlib.metadata import version

__version__ = version("crfx")
