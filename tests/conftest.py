"""Settings that must be made before any library is loaded."""

import os

# Idle OpenMP threads that spin make small parallel regions crawl where other processes want the
# cores too, as they may where tests run.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
