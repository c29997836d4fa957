"""The lists are a package of their own, which the report reads as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
