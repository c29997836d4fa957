"""Takes an objective and potentials, gives better potentials; comes after `potentials`, before
`estimators`.
"""
