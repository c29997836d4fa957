"""What pages hold is a package of its own, which the report reads as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
