"""`python -m crfx`: the command line."""

from crfx.cli import main

if __name__ == "__main__":
    main()
