"""Real data are not in the repository: tests that need them skip, and say what is missing."""

import pytest


@pytest.fixture(scope="session")
def load_or_skip():
    """Call a loader; what it says when its files are not there is the reason to skip."""

    def load(loader, *args):
        try:
            return loader(*args)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return load
