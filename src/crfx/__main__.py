"""`python -m crfx`: the command line."""

import sys

from crfx.cli import main

if __name__ == "__main__":
    sys.exit(main())
