"""The content of pages is a separate package, which the report reads as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
