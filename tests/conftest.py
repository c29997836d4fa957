"""Settings that must be made before any library is loaded."""

import os

# Idle OpenMP threads that spin make small parallel regions crawl where other processes want the
# cores too, as they may where tests run.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
from hypothesis import settings

# The same examples every time, so that a change fails for what it changed. To look for new ones:
# HYPOTHESIS_PROFILE=wander make test
settings.register_profile("steady", derandomize=True, print_blob=True)
settings.register_profile("wander", print_blob=True)
# For the witnesses of each instruction set, which run in addition.
settings.register_profile("brief", derandomize=True, print_blob=True, max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session")
def load_or_skip():
    """Call a loader; what it says when its files are not there is the reason to skip."""

    def load(loader, *args):
        try:
            return loader(*args)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return load
