"""Takes a model and a `batch`, gives labels, probabilities and metrics; comes after `trainers`,
before `estimators`.
"""
