"""Harnesses are programs, not tests: `run.py` runs them, `test_harnesses.py` tries their seeds."""

collect_ignore_glob = ["fuzz_*.py", "harness.py", "run.py", "texts.py", "zips.py"]
