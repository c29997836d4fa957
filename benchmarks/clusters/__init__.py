"""The parts of `benchmarks/distributed.py`, one question each."""
