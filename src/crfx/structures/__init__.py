"""Takes lengths or parents, gives the parts of a batch; comes after `batch`, before `inference`.

A structure knows nothing of features or of where scores come from: it says which rows carry an
edge, which labels come before each edge row, and what a labelling scores.
"""

from crfx.structures.base import Structure
from crfx.structures.chain import Chain
from crfx.structures.forest import Forest

__all__ = ["Chain", "Forest", "Structure"]
