"""Takes lengths or parents, gives the parts of a batch; comes after `batch`, before `inference`.

A structure knows nothing of features or of where scores come from: it says which rows carry an
edge, which labels come before each edge row, and what a labelling scores.
"""

from crfx.structures.base import Structure
from crfx.structures.chain import Chain
from crfx.structures.constraints import Constraints
from crfx.structures.forest import Forest
from crfx.structures.mask import Mask

__all__ = ["Chain", "Constraints", "Forest", "Mask", "Structure"]
